package flat

import (
	"testing"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

func TestEnsure(t *testing.T) {
	p, err := Registration().New(network.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	n := network.Network{Name: "net-1", Spec: networkv1.NetworkSpec{Type: "flat"}}
	if state, err := p.Ensure(t.Context(), n); err != nil || !state.Ready {
		t.Errorf("%+v, %v", state, err)
	}
	if gone, err := p.Delete(t.Context(), n); !gone || err != nil {
		t.Errorf("the deletion: %t, %v", gone, err)
	}
}

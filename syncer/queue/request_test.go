package queue

import (
	"testing"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

func TestRequest(t *testing.T) {
	r := Request{Cluster: "team-71a1c3-blue", Kind: "Pod", Key: kindstest.WebKey()}
	if got := r.Lane(); got != "team-71a1c3-blue" {
		t.Errorf("the lane is %q", got)
	}
	if got, want := r.String(), "team-71a1c3-blue: Pod default/web"; got != want {
		t.Errorf("the request is %q, want %q", got, want)
	}
}

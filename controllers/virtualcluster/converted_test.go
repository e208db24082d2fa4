package virtualcluster

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// TestConvertedIsReadyWithoutSyncer: nothing is synced for a converted tenant.
func TestConvertedIsReadyWithoutSyncer(t *testing.T) {
	for converted, want := range map[bool]bool{true: true, false: false} {
		chosen := choice{"Converted", "Converted", provisioner.Capabilities{Network: true, Converted: converted}}
		status := statusOf(&tenancyv1alpha1.VirtualCluster{}, outcome{chosen: chosen, controlPlane: provisioner.ControlPlane{Ready: true}})
		if got := meta.IsStatusConditionTrue(status.Conditions, tenancyv1alpha1.ConditionReady); got != want {
			t.Errorf("converted %v: ready is %v", converted, got)
		}
	}
}

// TestKubeconfigsOfConverted: there is none that the syncer would connect by.
func TestKubeconfigsOfConverted(t *testing.T) {
	r := &Reconciler{Gateway: Gateway{URL: "https://gw.example.com"}}
	data, err := r.kubeconfigs("team-0a1b2c-red", &provisioner.ControlPlane{Kubeconfig: []byte("k")}, true)
	if err != nil {
		t.Fatal(err)
	}
	if keys := slices.Collect(maps.Keys(data)); !slices.Equal(keys, []string{names.GatewayKubeconfigKey}) {
		t.Errorf("the Secret has %q", keys)
	}
	if names.PlatformKubeconfig(data) != nil {
		t.Error("the platform has a kubeconfig")
	}
}

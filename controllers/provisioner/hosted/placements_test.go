package hosted

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// TestPlacements: a control plane counts once, from when it is placed, whether
// the cache shows it or not.
func TestPlacements(t *testing.T) {
	p := &placements{}
	green := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "green", UID: "green"}}
	var cached []tenancyv1alpha1.HostedControlPlane
	expect := func(when string, want map[string]int64) {
		t.Helper()
		if diff := cmp.Diff(want, p.count(cached)); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	expect("at first", map[string]int64{})
	p.wait(green)
	if got := p.requests(); len(got) != 1 || got[0].NamespacedName != client.ObjectKeyFromObject(green) {
		t.Errorf("%v wait for a store, want one", got)
	}
	p.add("red", "a")
	p.add("blue", "b")
	p.add("green", "a")
	if got := p.requests(); len(got) > 0 {
		t.Errorf("%v wait for a store, want none", got)
	}
	expect("when placed", map[string]int64{"a": 2, "b": 1})

	red := tenancyv1alpha1.HostedControlPlane{}
	red.Spec.Store, red.Spec.VirtualCluster.UID = "a", "red"
	cached = append(cached, red)
	expect("when the cache shows one", map[string]int64{"a": 2, "b": 1})
	p.forget("green")
	expect("when one was not made", map[string]int64{"a": 1, "b": 1})
	cached = nil
	expect("when one is gone", map[string]int64{"b": 1})
}

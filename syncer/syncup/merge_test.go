package syncup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// shownNode is a kind that is synced up.
var shownNode = kinds.Up[*corev1.Node]{
	Name: "Node", Object: &corev1.Node{}, List: &corev1.NodeList{},
	Desired: func(_ kinds.View, super *corev1.Node) *corev1.Node { return super },
	Merge:   func(tenant, desired *corev1.Node) { tenant.Labels, tenant.Spec = desired.Labels, desired.Spec },
}

func node(labels, annotations map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels, Annotations: annotations}}
}

func TestFromSuper(t *testing.T) {
	marked, other := map[string]string{names.FromSuper: "true"}, map[string]string{"a": "1"}
	for name, tc := range map[string]struct {
		obj  *corev1.Node
		want bool
	}{
		"unmarked":                 {node(other, other), false},
		"marked twice":             {node(marked, marked), true},
		"robbed of its label":      {node(nil, marked), true},
		"robbed of its annotation": {node(marked, nil), true},
	} {
		if got := session.FromSuper(tc.obj); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestMark(t *testing.T) {
	want := map[string]string{names.FromSuper: "true"}
	if diff := cmp.Diff(want, session.Mark(nil)); diff != "" {
		t.Errorf("of nothing (-want +got):\n%s", diff)
	}
	want["a"] = "1"
	if diff := cmp.Diff(want, session.Mark(map[string]string{"a": "1", names.FromSuper: "no"})); diff != "" {
		t.Errorf("of others (-want +got):\n%s", diff)
	}
}

func TestMergedUp(t *testing.T) {
	k := shownNode.Erase()
	tenant := node(map[string]string{"tenant": "1"}, map[string]string{"note": "1"})
	desired := node(map[string]string{"zone": "a", names.FromSuper: "true"}, nil)
	desired.Spec.Unschedulable = true
	wasTenant, wasDesired := tenant.DeepCopy(), desired.DeepCopy()

	merged := mergedUp(k, tenant, desired).(*corev1.Node)
	want := node(
		map[string]string{"zone": "a", names.FromSuper: "true"},
		map[string]string{"note": "1", names.FromSuper: "true"},
	)
	want.Spec.Unschedulable = true
	if diff := cmp.Diff(want, merged); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	merged.Labels["scribble"], merged.Annotations["scribble"] = "1", "1"
	if diff := cmp.Diff(wasTenant, tenant); diff != "" {
		t.Errorf("the tenant's object, which is the cache's, changed:\n%s", diff)
	}
	if diff := cmp.Diff(wasDesired, desired); diff != "" {
		t.Errorf("what is desired changed:\n%s", diff)
	}

	// Objects that expire are not created again, and need no second mark.
	expiring := shownNode
	expiring.Expires = true
	if got := mergedUp(expiring.Erase(), tenant, desired); got.GetAnnotations()[names.FromSuper] != "" {
		t.Error("what expires is marked twice")
	}
}

func TestMergedBack(t *testing.T) {
	tenant, super := node(nil, nil), node(nil, nil)
	tenant.Spec.Unschedulable = true
	if got := mergedBack(shownNode.Erase(), kinds.View{}, objects{super: super, tenant: tenant}); got != nil {
		t.Errorf("of a kind that a tenant may not change: %v", got)
	}
	k := shownNode
	k.Back = func(_ kinds.View, super, tenant *corev1.Node) { super.Spec.Unschedulable = tenant.Spec.Unschedulable }
	got := mergedBack(k.Erase(), kinds.View{}, objects{super: super, tenant: tenant})
	if got == nil || !got.(*corev1.Node).Spec.Unschedulable {
		t.Errorf("of what a tenant changed: %v", got)
	}
	if super.Spec.Unschedulable {
		t.Error("the super cluster's object, which is the cache's, changed")
	}
	if again := mergedBack(k.Erase(), kinds.View{}, objects{super: got, tenant: tenant}); again != nil {
		t.Errorf("of what the super cluster has already: %v", again)
	}
}

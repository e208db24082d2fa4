package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// gates returns scheduling gates.
func gates(names ...string) []corev1.PodSchedulingGate {
	var out []corev1.PodSchedulingGate
	for _, n := range names {
		out = append(out, corev1.PodSchedulingGate{Name: n})
	}
	return out
}

// onNodes returns a node selector: one of its terms has to match, each of which
// is a list of keys.
func onNodes(terms ...[]string) *corev1.Affinity {
	selector := &corev1.NodeSelector{}
	for _, keys := range terms {
		term := corev1.NodeSelectorTerm{}
		for _, key := range keys {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists})
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
}

// preferring adds preferred nodes.
func preferring(a *corev1.Affinity, weights ...int32) *corev1.Affinity {
	for _, w := range weights {
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
			a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{Weight: w})
	}
	return a
}

func TestGatedPodMerge(t *testing.T) {
	zone := []string{"zone"}
	zoneAndDisk := []string{"zone", "disk"}
	tests := map[string]struct {
		had                  string
		super, desired, want corev1.PodSpec
	}{
		"gates are removed, and the node selector becomes narrower": {
			"a,b,c",
			corev1.PodSpec{SchedulingGates: gates("a", "b", "c"), NodeSelector: map[string]string{"its": "own"}},
			corev1.PodSpec{SchedulingGates: gates("b"), NodeSelector: map[string]string{"zone": "1"}},
			corev1.PodSpec{SchedulingGates: gates("b"), NodeSelector: map[string]string{"its": "own", "zone": "1"}},
		},
		"the last gate": {
			"a", corev1.PodSpec{SchedulingGates: gates("a")},
			corev1.PodSpec{NodeSelector: map[string]string{"zone": "1"}},
			corev1.PodSpec{NodeSelector: map[string]string{"zone": "1"}},
		},
		"a gate that the super cluster added stays": {
			"a", corev1.PodSpec{SchedulingGates: gates("a", "example.com/quota")}, corev1.PodSpec{},
			corev1.PodSpec{SchedulingGates: gates("example.com/quota")},
		},
		"without gates the choice of nodes stays, and gates are not added": {
			"a", corev1.PodSpec{NodeSelector: map[string]string{"its": "own"}},
			corev1.PodSpec{SchedulingGates: gates("a"), NodeSelector: map[string]string{"zone": "1"}, Affinity: onNodes(zone)},
			corev1.PodSpec{NodeSelector: map[string]string{"its": "own"}},
		},
		"nodes are chosen for the first time": {
			"a", corev1.PodSpec{SchedulingGates: gates("a")}, corev1.PodSpec{SchedulingGates: gates("a"), Affinity: preferring(onNodes(zone), 1)},
			corev1.PodSpec{SchedulingGates: gates("a"), Affinity: preferring(onNodes(zone), 1)},
		},
		"a term with more requirements": {
			"a", corev1.PodSpec{SchedulingGates: gates("a"), Affinity: onNodes(zone, []string{"x"})},
			corev1.PodSpec{SchedulingGates: gates("a"), Affinity: onNodes(zoneAndDisk, []string{"x"})},
			corev1.PodSpec{SchedulingGates: gates("a"), Affinity: onNodes(zoneAndDisk, []string{"x"})},
		},
		"the super cluster's requirements stay": {
			"a", corev1.PodSpec{SchedulingGates: gates("a"), Affinity: preferring(onNodes([]string{"zone", "its"}), 7)},
			corev1.PodSpec{SchedulingGates: gates("a"), Affinity: preferring(onNodes(zoneAndDisk), 1)},
			corev1.PodSpec{SchedulingGates: gates("a"), Affinity: preferring(onNodes([]string{"zone", "its", "disk"}), 7, 1)},
		},
		"ambiguous terms stay": {
			"a", corev1.PodSpec{SchedulingGates: gates("a"), Affinity: onNodes(zone)},
			corev1.PodSpec{SchedulingGates: gates("a"), Affinity: onNodes(zone, zoneAndDisk)},
			corev1.PodSpec{SchedulingGates: gates("a"), Affinity: onNodes(zone)},
		},
		"affinity to pods cannot be changed": {
			"a", corev1.PodSpec{SchedulingGates: gates("a"), Affinity: &corev1.Affinity{}},
			corev1.PodSpec{SchedulingGates: gates("a"), Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}},
			corev1.PodSpec{SchedulingGates: gates("a"), Affinity: &corev1.Affinity{}},
		},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			super, desired := &corev1.Pod{ObjectMeta: superMeta("web"), Spec: tt.super}, &corev1.Pod{Spec: tt.desired}
			super.Annotations = map[string]string{names.Values: tt.had}
			wasDesired := desired.DeepCopy()
			k.Merge(super, desired)
			want := &corev1.Pod{ObjectMeta: super.ObjectMeta, Spec: tt.want}
			if diff := cmp.Diff(want, super, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
			once := super.DeepCopy()
			k.Merge(super, desired)
			unchanged(t, "the copy, by a second merge,", once, super)
			scribble(super)
			unchanged(t, "the desired object", wasDesired, desired)
		})
	}
}

// TestGatesAreRemembered checks that a copy lists the tenant's gates.
func TestGatesAreRemembered(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	copied := down(t, k, tenantPod(func(p *corev1.Pod) { p.Spec.SchedulingGates = gates("a", "example.com/b") }))
	if diff := cmp.Diff(gates("a", "example.com/b"), copied.Spec.SchedulingGates); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	copied.Spec.SchedulingGates = append(copied.Spec.SchedulingGates, gates("example.com/quota")...)
	k.Merge(copied, down(t, k, tenantPod()))
	if diff := cmp.Diff(gates("example.com/quota"), copied.Spec.SchedulingGates); diff != "" {
		t.Errorf("gates when the tenant has none left (-want +got):\n%s", diff)
	}
}

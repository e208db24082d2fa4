package resources

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// joinGates returns the value of the annotation that lists the tenant's gates.
func joinGates(gates []corev1.PodSchedulingGate) string {
	listed := make([]string, len(gates))
	for i, g := range gates {
		listed[i] = g.Name
	}
	return strings.Join(listed, ",")
}

// mergeGated merges the mutable fields of a pod with scheduling gates. Gates
// that the tenant removed are removed; those of the super cluster stay. Node
// selection can only become narrower, and what the super cluster's admission
// added to it stays.
func mergeGated(super, desired *corev1.Pod) {
	had := strings.Split(super.Annotations[names.Values], ",")
	super.Spec.SchedulingGates = slices.DeleteFunc(super.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool {
		return slices.Contains(had, gate.Name) && !slices.Contains(desired.Spec.SchedulingGates, gate)
	})
	if super.Spec.NodeSelector == nil {
		super.Spec.NodeSelector = map[string]string{}
	}
	maps.Copy(super.Spec.NodeSelector, desired.Spec.NodeSelector)
	if desired.Spec.Affinity == nil || desired.Spec.Affinity.NodeAffinity == nil {
		return
	}
	if super.Spec.Affinity == nil {
		super.Spec.Affinity = &corev1.Affinity{}
	}
	super.Spec.Affinity.NodeAffinity = narrowed(super.Spec.Affinity.NodeAffinity, desired.Spec.Affinity.NodeAffinity.DeepCopy())
}

// narrowed returns the node affinity of the copy with the additions of the
// desired one, which is modified.
func narrowed(super, desired *corev1.NodeAffinity) *corev1.NodeAffinity {
	if super == nil {
		return desired
	}
	preferred := &super.PreferredDuringSchedulingIgnoredDuringExecution
	*preferred = appendNew(*preferred, desired.PreferredDuringSchedulingIgnoredDuringExecution)
	required, want := super.RequiredDuringSchedulingIgnoredDuringExecution, desired.RequiredDuringSchedulingIgnoredDuringExecution
	switch {
	case want == nil:
	case required == nil:
		super.RequiredDuringSchedulingIgnoredDuringExecution = want
	case len(required.NodeSelectorTerms) == len(want.NodeSelectorTerms):
		for i := range want.NodeSelectorTerms {
			term := &required.NodeSelectorTerms[i]
			term.MatchExpressions = appendNew(term.MatchExpressions, want.NodeSelectorTerms[i].MatchExpressions)
			term.MatchFields = appendNew(term.MatchFields, want.NodeSelectorTerms[i].MatchFields)
		}
	}
	return super
}

// appendNew appends the items that are not in the list yet.
func appendNew[T any](to, items []T) []T {
	for _, item := range items {
		if !slices.ContainsFunc(to, func(have T) bool { return semanticEqual(have, item) }) {
			to = append(to, item)
		}
	}
	return to
}

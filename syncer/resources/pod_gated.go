package resources

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// joinGates lists the gates that came from the tenant in an annotation.
func joinGates(gates []corev1.PodSchedulingGate) string {
	listed := make([]string, len(gates))
	for i, g := range gates {
		listed[i] = g.Name
	}
	return strings.Join(listed, ",")
}

// mergeGated takes what can be changed in a pod that waits for its gates. Gates that the tenant's pod had are taken away with
// its own; those of the super cluster's own stay. The choice of nodes can only grow narrower, and what the super cluster's
// admission added to it stays.
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

// narrowed is the copy's choice of nodes with what is new in the desired one, which becomes part of it.
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

// appendNew appends the items that are not there.
func appendNew[T any](to, items []T) []T {
	for _, item := range items {
		if !slices.ContainsFunc(to, func(have T) bool { return semanticEqual(have, item) }) {
			to = append(to, item)
		}
	}
	return to
}

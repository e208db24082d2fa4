package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxSelected bounds the number of labels and values in the selectors of one
// object. The super cluster's scheduler and controllers, which all tenants
// share, compare each of them with each pod or node.
const maxSelected = 1000

// checkSize rejects an object whose selectors are too large.
func checkSize(selected int) error {
	if selected <= maxSelected {
		return nil
	}
	return fmt.Errorf("its selectors have %d labels and values, and the super cluster allows no more than %d in one object; "+
		"add one label to all selected objects", selected, maxSelected)
}

// sizeOf counts the labels and values in selectors.
func sizeOf(selectors ...*metav1.LabelSelector) int {
	size := 0
	for _, s := range selectors {
		if s == nil {
			continue
		}
		size += len(s.MatchLabels)
		for i := range s.MatchExpressions {
			size += 1 + len(s.MatchExpressions[i].Values)
		}
	}
	return size
}

// podSize counts the labels and values in a pod's selectors of nodes and pods.
func podSize(spec *corev1.PodSpec) int {
	size := len(spec.NodeSelector)
	for i := range spec.TopologySpreadConstraints {
		size += sizeOf(spec.TopologySpreadConstraints[i].LabelSelector)
	}
	if spec.Affinity == nil {
		return size
	}
	for _, term := range affinityTerms(spec.Affinity) {
		size += sizeOf(term.LabelSelector, term.NamespaceSelector) + len(term.Namespaces)
	}
	return size + nodeAffinitySize(spec.Affinity.NodeAffinity)
}

func nodeAffinitySize(affinity *corev1.NodeAffinity) int {
	if affinity == nil {
		return 0
	}
	size := 0
	add := func(term *corev1.NodeSelectorTerm) {
		for _, requirements := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
			for i := range requirements {
				size += 1 + len(requirements[i].Values)
			}
		}
	}
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i := range required.NodeSelectorTerms {
			add(&required.NodeSelectorTerms[i])
		}
	}
	for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		add(&affinity.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
	}
	return size
}

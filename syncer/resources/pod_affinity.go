package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// translateAffinity restricts pod affinity to the tenant's namespaces, with
// their names in the super cluster. A term without namespaces selects the pod's
// own, on both sides.
func translateAffinity(t translate.Tenant, affinity *corev1.Affinity, labels map[string]string) {
	if affinity == nil {
		return
	}
	for _, term := range affinityTerms(affinity) {
		for i, namespace := range term.Namespaces {
			term.Namespaces[i] = t.SuperNamespace(namespace)
		}
		term.NamespaceSelector = t.NamespaceSelector(term.NamespaceSelector)
		resolveKeys(term.LabelSelector, term.MatchLabelKeys, metav1.LabelSelectorOpIn, labels)
		resolveKeys(term.LabelSelector, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn, labels)
		term.LabelSelector = t.PodSelector(term.LabelSelector)
		term.MatchLabelKeys, term.MismatchLabelKeys = nil, nil
	}
}

// affinityTerms returns the terms of an affinity that select pods.
func affinityTerms(affinity *corev1.Affinity) []*corev1.PodAffinityTerm {
	var terms []*corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			terms = append(terms, &required[i])
		}
		for i := range preferred {
			terms = append(terms, &preferred[i].PodAffinityTerm)
		}
	}
	if to := affinity.PodAffinity; to != nil {
		add(to.RequiredDuringSchedulingIgnoredDuringExecution, to.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if from := affinity.PodAntiAffinity; from != nil {
		add(from.RequiredDuringSchedulingIgnoredDuringExecution, from.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return terms
}

// translateSpread replaces the label keys of constraints by explicit selectors.
func translateSpread(t translate.Tenant, constraints []corev1.TopologySpreadConstraint, labels map[string]string) {
	for i := range constraints {
		resolveKeys(constraints[i].LabelSelector, constraints[i].MatchLabelKeys, metav1.LabelSelectorOpIn, labels)
		constraints[i].LabelSelector = t.PodSelector(constraints[i].LabelSelector)
		constraints[i].MatchLabelKeys = nil
	}
}

// resolveKeys adds the values of the pod's own labels to a selector. An
// apiserver does so when a pod is created, and rejects a pod that another
// apiserver has already resolved, such as those of most tenants; so the copy
// has no keys.
func resolveKeys(selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator, labels map[string]string) {
	if selector == nil {
		return
	}
	for _, key := range keys {
		value, labelled := labels[key]
		if !labelled {
			continue
		}
		resolved := metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}}
		there := func(r metav1.LabelSelectorRequirement) bool { return semanticEqual(r, resolved) }
		if !slices.ContainsFunc(selector.MatchExpressions, there) {
			selector.MatchExpressions = append(selector.MatchExpressions, resolved)
		}
	}
}

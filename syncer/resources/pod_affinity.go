package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// translateAffinity has a pod look for others in the tenant's namespaces alone, by the names that these have in the super
// cluster. A term that names none means the pod's own, on both sides.
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

// affinityTerms are the terms of an affinity that are about other pods.
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

// translateSpread has constraints say by themselves which pods they count.
func translateSpread(t translate.Tenant, constraints []corev1.TopologySpreadConstraint, labels map[string]string) {
	for i := range constraints {
		resolveKeys(constraints[i].LabelSelector, constraints[i].MatchLabelKeys, metav1.LabelSelectorOpIn, labels)
		constraints[i].LabelSelector = t.PodSelector(constraints[i].LabelSelector)
		constraints[i].MatchLabelKeys = nil
	}
}

// resolveKeys has a selector say what keys say that refer to the pod's own labels. An apiserver does so when a pod is made, and
// refuses a pod for which another one has done it already, as most tenants' have; so the copy comes without the keys.
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

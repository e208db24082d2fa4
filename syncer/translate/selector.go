package translate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// NamespaceSelector is the super cluster's selector of what a tenant's selects among its namespaces. It never selects a
// namespace of anybody else, not even where it names none. No selector stays none.
func (t Tenant) NamespaceSelector(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if selector == nil {
		return nil
	}
	super := selector.DeepCopy()
	if name, ok := super.MatchLabels[corev1.LabelMetadataName]; ok {
		super.MatchLabels[corev1.LabelMetadataName] = t.SuperNamespace(name)
	}
	for _, e := range super.MatchExpressions {
		if e.Key != corev1.LabelMetadataName {
			continue
		}
		for i, name := range e.Values {
			e.Values[i] = t.SuperNamespace(name)
		}
	}
	if super.MatchLabels == nil {
		super.MatchLabels = map[string]string{}
	}
	super.MatchLabels[names.VCName] = t.Name
	super.MatchLabels[names.VCNamespace] = t.Namespace
	return super
}

// Unselectable are the labels that a selector names though copies do not carry them, because they stay in the tenant; beside
// those that are translated.
func (t Tenant) Unselectable(selector *metav1.LabelSelector, translated ...string) []string {
	if selector == nil {
		return nil
	}
	var stay []string
	add := func(key string) {
		if t.LabelStays(key) && !slices.Contains(translated, key) && !slices.Contains(stay, key) {
			stay = append(stay, key)
		}
	}
	for key := range selector.MatchLabels {
		add(key)
	}
	for _, e := range selector.MatchExpressions {
		add(e.Key)
	}
	slices.Sort(stay)
	return stay
}

package translate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// PodSelector returns the selector for the copies of the pods that a tenant's
// selector selects; nil for nil.
func (t Tenant) PodSelector(selector *metav1.LabelSelector) *metav1.LabelSelector {
	return t.selector(podKind, selector)
}

// PodLabels returns the labels that select the copies of the pods that a
// tenant's labels select; nil for nil.
func (t Tenant) PodLabels(selector map[string]string) map[string]string {
	if selector == nil {
		return nil
	}
	super := make(map[string]string, len(selector))
	for key, value := range selector {
		super[t.selected(podKind, key)] = value
	}
	return super
}

// NamespaceSelector returns the selector for the copies of the namespaces that
// a tenant's selector selects. It never selects a namespace of another owner,
// even if it is empty. It returns nil for nil.
func (t Tenant) NamespaceSelector(selector *metav1.LabelSelector) *metav1.LabelSelector {
	super := t.selector(namespaceKind, selector)
	if super == nil {
		return nil
	}
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

// selector returns a selector with the keys that copies of a kind have; nil for
// nil.
func (t Tenant) selector(kind string, selector *metav1.LabelSelector) *metav1.LabelSelector {
	if selector == nil {
		return nil
	}
	super := selector.DeepCopy()
	clear(super.MatchLabels)
	for key, value := range selector.MatchLabels {
		super.MatchLabels[t.selected(kind, key)] = value
	}
	for i := range super.MatchExpressions {
		e := &super.MatchExpressions[i]
		e.Key = t.selected(kind, e.Key)
	}
	return super
}

// selected returns the key by which copies of a kind are selected. For a label
// that stays in the tenant, it is a key that no copy has.
func (t Tenant) selected(kind, key string) string {
	if superKey := t.LabelKey(kind, key); superKey != "" {
		return superKey
	}
	return names.Label(key)
}

// UnselectablePods returns the labels in a selector of pods that copies do not
// have, because they stay in the tenant.
func (t Tenant) UnselectablePods(selector *metav1.LabelSelector) []string {
	return t.unselectable(podKind, selector)
}

// UnselectableNamespaces returns the labels in a selector of namespaces that
// copies do not have.
func (t Tenant) UnselectableNamespaces(selector *metav1.LabelSelector) []string {
	return t.unselectable(namespaceKind, selector)
}

func (t Tenant) unselectable(kind string, selector *metav1.LabelSelector) []string {
	if selector == nil {
		return nil
	}
	named := slices.Collect(maps.Keys(selector.MatchLabels))
	for _, e := range selector.MatchExpressions {
		named = append(named, e.Key)
	}
	stay := slices.DeleteFunc(named, func(key string) bool { return t.LabelKey(kind, key) != "" })
	slices.Sort(stay)
	return slices.Compact(stay)
}

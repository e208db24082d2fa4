package provider

import (
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// staticMapper maps the built-in kinds without discovery: a mapper with
// discovery would hang with a tenant that hangs, and would keep the same table
// for each tenant. All kinds except the given ones are namespaced.
func staticMapper(scheme *runtime.Scheme, clusterScoped []schema.GroupKind) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	withoutNamespace := sets.New(clusterScoped...).Insert(
		schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"})
	for gvk := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if withoutNamespace.Has(gvk.GroupKind()) {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(gvk, scope)
	}
	return mapper
}

// mapper maps the built-in kinds, which all tenants share, and the kinds that
// were learned for one tenant.
type mapper struct {
	builtin meta.RESTMapper

	mu      sync.RWMutex
	learned map[schema.GroupVersionKind]*meta.RESTMapping
}

func newMapper(builtin meta.RESTMapper) *mapper {
	return &mapper{builtin: builtin, learned: map[schema.GroupVersionKind]*meta.RESTMapping{}}
}

// learn adds a kind.
func (m *mapper) learn(mapping *meta.RESTMapping) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learned[mapping.GroupVersionKind] = mapping
}

// RESTMapping returns the mapping of a kind.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, version := range versions {
		if mapping := m.learned[gk.WithVersion(version)]; mapping != nil {
			return mapping, nil
		}
	}
	return m.builtin.RESTMapping(gk, versions...)
}

// RESTMappings returns the mappings of a kind.
func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	if mapping, err := m.RESTMapping(gk, versions...); err == nil {
		return []*meta.RESTMapping{mapping}, nil
	}
	return m.builtin.RESTMappings(gk, versions...)
}

// KindFor returns the kind of a built-in resource.
func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.builtin.KindFor(resource)
}

// KindsFor returns the kinds of a built-in resource.
func (m *mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.builtin.KindsFor(resource)
}

// ResourceFor returns the complete name of a built-in resource.
func (m *mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.builtin.ResourceFor(input)
}

// ResourcesFor returns the complete names of a built-in resource.
func (m *mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.builtin.ResourcesFor(input)
}

// ResourceSingularizer returns the singular of a built-in resource.
func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return m.builtin.ResourceSingularizer(resource)
}

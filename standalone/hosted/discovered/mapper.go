package discovered

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapper maps the kinds of a control plane to resources, as they were when it
// was first used after its last reset.
type Mapper struct {
	client *Client

	mu   sync.Mutex
	apis *APIs
}

var _ meta.ResettableRESTMapper = &Mapper{}

// NewMapper returns a mapper for a control plane.
func NewMapper(client *Client) *Mapper { return &Mapper{client: client} }

// Reset makes the next call discover again.
func (m *Mapper) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apis = nil
}

// mapper returns the mapper of the APIs.
func (m *Mapper) mapper() (meta.RESTMapper, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.apis == nil {
		apis, err := m.client.APIs()
		if err != nil {
			return nil, err
		}
		m.apis = apis
	}
	return m.apis.mapper()
}

// mapped calls a method of the mapper of the APIs.
func mapped[T any](m *Mapper, call func(meta.RESTMapper) (T, error)) (T, error) {
	mapper, err := m.mapper()
	if err != nil {
		return *new(T), err
	}
	return call(mapper)
}

// KindFor implements meta.RESTMapper.
func (m *Mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return mapped(m, func(of meta.RESTMapper) (schema.GroupVersionKind, error) { return of.KindFor(resource) })
}

// KindsFor implements meta.RESTMapper.
func (m *Mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return mapped(m, func(of meta.RESTMapper) ([]schema.GroupVersionKind, error) { return of.KindsFor(resource) })
}

// ResourceFor implements meta.RESTMapper.
func (m *Mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return mapped(m, func(of meta.RESTMapper) (schema.GroupVersionResource, error) { return of.ResourceFor(input) })
}

// ResourcesFor implements meta.RESTMapper.
func (m *Mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return mapped(m, func(of meta.RESTMapper) ([]schema.GroupVersionResource, error) { return of.ResourcesFor(input) })
}

// RESTMapping implements meta.RESTMapper.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return mapped(m, func(of meta.RESTMapper) (*meta.RESTMapping, error) { return of.RESTMapping(kind, versions...) })
}

// RESTMappings implements meta.RESTMapper.
func (m *Mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return mapped(m, func(of meta.RESTMapper) ([]*meta.RESTMapping, error) { return of.RESTMappings(kind, versions...) })
}

// ResourceSingularizer implements meta.RESTMapper.
func (m *Mapper) ResourceSingularizer(resource string) (string, error) {
	return mapped(m, func(of meta.RESTMapper) (string, error) { return of.ResourceSingularizer(resource) })
}

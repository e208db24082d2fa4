// Package resources has the custom resources of all converted tenants: what
// their CRDs in the super cluster say, in the tenants' names.
package resources

import (
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/internal/lastknown"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// CRD is a CustomResourceDefinition as far as the gateway needs it: without
// schemas, and in the names of the tenant.
type CRD = apiextensionsv1.CustomResourceDefinition

// Index knows the CRDs with the label names.Converted.
type Index struct {
	mu      sync.RWMutex
	tenants map[string]*tenant
}

// tenant has the CRDs of a tenant. The generation changes with them.
type tenant struct {
	crds       map[schema.GroupResource]*CRD
	generation int
}

// New returns an empty index.
func New() *Index { return &Index{tenants: map[string]*tenant{}} }

// Find returns the CRD of a tenant's resource. It is shared: no caller changes it.
func (i *Index) Find(clusterKey string, resource schema.GroupResource) (*CRD, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	t := i.tenants[clusterKey]
	if t == nil {
		return nil, false
	}
	found, ok := t.crds[resource]
	return found, ok
}

// All returns the CRDs of a tenant by name, and a number that is another one
// after each change. They are shared: no caller changes them.
func (i *Index) All(clusterKey string) ([]*CRD, int) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	t := i.tenants[clusterKey]
	if t == nil {
		return nil, 0
	}
	all := make([]*CRD, 0, len(t.crds))
	for _, crd := range t.crds {
		all = append(all, crd)
	}
	slices.SortFunc(all, func(a, b *CRD) int { return strings.Compare(a.Name, b.Name) })
	return all, t.generation
}

// Set adds a CRD of the super cluster, unless it is not one of a converted
// tenant.
func (i *Index) Set(crd *CRD) {
	key := crd.Labels[names.Converted]
	group, ok := naming.Namer{Key: key}.TenantGroup(crd.Spec.Group)
	if key == "" || !ok {
		return
	}
	crd = Trim(crd.DeepCopy())
	crd.Spec.Group, crd.Name = group, crd.Spec.Names.Plural+"."+group
	i.mu.Lock()
	defer i.mu.Unlock()
	t := i.tenants[key]
	if t == nil {
		t = &tenant{crds: map[schema.GroupResource]*CRD{}}
		i.tenants[key] = t
	}
	t.crds[resourceOf(crd)] = crd
	t.generation++
}

// Delete removes a CRD of the super cluster.
func (i *Index) Delete(crd *CRD) {
	key := crd.Labels[names.Converted]
	group, ok := naming.Namer{Key: key}.TenantGroup(crd.Spec.Group)
	if !ok {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if t := i.tenants[key]; t != nil {
		delete(t.crds, schema.GroupResource{Group: group, Resource: crd.Spec.Names.Plural})
		t.generation++
	}
}

func resourceOf(crd *CRD) schema.GroupResource {
	return schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
}

// Trim removes what the index does not need, in place: the schemas are most of a
// CRD.
func Trim(crd *CRD) *CRD {
	crd.ManagedFields, crd.Annotations = nil, nil
	for v := range crd.Spec.Versions {
		crd.Spec.Versions[v].Schema, crd.Spec.Versions[v].AdditionalPrinterColumns = nil, nil
	}
	return crd
}

// Handler returns what an informer calls that watches the CRDs with the label
// names.Converted.
func (i *Index) Handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { i.Set(obj.(*CRD)) },
		UpdateFunc: func(_, obj any) { i.Set(obj.(*CRD)) },
		DeleteFunc: func(obj any) {
			if crd, ok := lastknown.Of[*CRD](obj); ok {
				i.Delete(crd)
			}
		},
	}
}

package sharedcrds

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
)

// basis is what the steps of a CRD depend on, as far as it is known without a
// request.
type basis struct {
	publication *publication
	system      System
	policy      Policy
	purge       string // the annotation of the VirtualCluster
	// version is the resource version of the tenant's CRD; empty if it has none.
	version string
}

// basis returns that of a subject whose CRD has a resource version.
func (of *subject) basis(version string) basis {
	b := basis{publication: of.published, policy: of.policy, purge: of.tenant.Annotations[names.PurgeCRDs], version: version}
	if of.published != nil {
		b.system = of.published.system(of.tenant.Labels)
	}
	return b
}

// settled is the outcome of a CRD of which no step is left.
type settled struct {
	basis   basis
	outcome outcome
}

// versionOf returns the resource version of a CRD; empty for none.
func versionOf(d *crd) string {
	if d == nil {
		return ""
	}
	return d.ResourceVersion
}

// versions are the resource versions of a tenant's CRDs by name, as its
// apiserver told them last.
type versions struct{ known sync.Map }

// of returns that of a CRD; empty if there is none.
func (v *versions) of(name string) string {
	version, _ := v.known.Load(name)
	known, _ := version.(string)
	return known
}

// handler follows the CRDs, and calls changed after each event.
func (v *versions) handler(changed func()) caches.Handler {
	set := func(obj client.Object) {
		v.known.Store(obj.GetName(), obj.GetResourceVersion())
		changed()
	}
	return caches.Handler{
		Add:    func(obj client.Object, _ bool) { set(obj) },
		Update: func(_, now client.Object) { set(now) },
		Remove: func(obj client.Object, _ bool) {
			v.known.Delete(obj.GetName())
			changed()
		},
	}
}

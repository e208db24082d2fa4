// Package index has the namespaces of all converted tenants in the super
// cluster, and how the tenants call them.
package index

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/internal/lastknown"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// remembered is how long the name of a deleted namespace is remembered. Watches
// may still have events about objects that were in it.
const remembered = 10 * time.Minute

// entry is a namespace as a tenant knows it.
type entry struct {
	clusterKey, tenantName string

	terminating bool
}

// Index knows the namespaces with the label names.Converted.
type Index struct {
	mu      sync.RWMutex
	entries map[string]entry
	deleted *expiring.Expiring
}

// New returns an empty index.
func New() *Index { return &Index{entries: map[string]entry{}, deleted: expiring.NewExpiring()} }

// TenantName implements naming.Namespaces.
func (i *Index) TenantName(clusterKey, superName string) (string, bool) {
	found, ok := i.find(superName)
	if !ok {
		var was any
		if was, ok = i.deleted.Get(superName); ok {
			found = was.(entry)
		}
	}
	if !ok || found.clusterKey != clusterKey {
		return "", false
	}
	return found.tenantName, true
}

// Tenant returns the cluster key of the tenant that a namespace belongs to; empty
// for one of no tenant.
func (i *Index) Tenant(superName string) string {
	found, _ := i.find(superName)
	return found.clusterKey
}

// Exists reports whether a namespace exists, is the tenant's, and is not being
// deleted.
func (i *Index) Exists(clusterKey, superName string) bool {
	found, ok := i.find(superName)
	return ok && found.clusterKey == clusterKey && !found.terminating
}

func (i *Index) find(superName string) (entry, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	found, ok := i.entries[superName]
	return found, ok
}

// Set adds a namespace of the super cluster, unless it is not one of a converted
// tenant.
func (i *Index) Set(namespace metav1.Object) {
	set := entry{
		clusterKey: namespace.GetLabels()[names.Converted], tenantName: namespace.GetAnnotations()[names.Namespace],
		terminating: namespace.GetDeletionTimestamp() != nil,
	}
	if set.clusterKey == "" || set.tenantName == "" {
		i.Delete(namespace)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.entries[namespace.GetName()] = set
}

// Delete removes a namespace.
func (i *Index) Delete(namespace metav1.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if was, ok := i.entries[namespace.GetName()]; ok {
		i.deleted.Set(namespace.GetName(), was, remembered)
		delete(i.entries, namespace.GetName())
	}
}

// Handler returns what an informer calls that watches the namespaces with the
// label names.Converted.
func (i *Index) Handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { i.Set(obj.(metav1.Object)) },
		UpdateFunc: func(_, obj any) { i.Set(obj.(metav1.Object)) },
		DeleteFunc: func(obj any) {
			if namespace, ok := lastknown.Of[metav1.Object](obj); ok {
				i.Delete(namespace)
			}
		},
	}
}

package chain

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// CreateObjects creates the objects that are equal in all clusters.
func (c *Chain) CreateObjects(ctx context.Context, t *Tenant) error {
	return c.createObjects(keyspace.NewContext(ctx, t.Name()), t)
}

// HasAllocators reports whether a tenant has allocators of ClusterIPs and node
// ports.
func (t *Tenant) HasAllocators() bool {
	t.services.mu.Lock()
	defer t.services.mu.Unlock()
	return t.services.created
}

// Authorizer returns the authorizer of the tenant's parts.
func (t *Tenant) Authorizer() authorizer.Authorizer { return t.authorizer() }

// RemoveTenants removes all tenants. Others can be added then.
func (c *Chain) RemoveTenants() {
	c.mu.RLock()
	tenants := slices.Collect(maps.Values(c.tenants))
	c.mu.RUnlock()
	for _, t := range tenants {
		c.Remove(t)
	}
}

// HasRegistered reports whether the APIServices of a tenant's local APIs are
// those that its start requires.
func HasRegistered(t *Tenant) bool { return t.registration.started.Load() }

// DecodeRecord decodes the object of a key below the prefix of its tenant.
func DecodeRecord(key string, value []byte) (runtime.Object, error) { return decodeRecord(key, value) }

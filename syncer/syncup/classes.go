package syncup

import (
	"sync"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// classes watches the tenant's classes of a kind from when it is first shown
// one. Few of these kinds are used, and together they would be a third of all
// watches of a tenant. Classes that the tenant creates are not synced.
type classes struct {
	objects *session.TenantObjects
	// open watches the tenant's objects of a kind.
	open func(*kinds.Kind) error
	// mu prevents that a kind is watched twice.
	mu sync.Mutex
}

// watch watches the tenant's objects of a kind, if they are not watched yet.
func (c *classes) watch(k *kinds.Kind) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.objects.Asleep(k) {
		return nil
	}
	return c.open(k)
}

package engine

import (
	"sync"

	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/patrol"
)

// tenants are the engaged tenants, by cluster key.
type tenants struct {
	mu      sync.RWMutex
	engaged map[multicluster.ClusterName]*engagement
}

// newTenants returns the tenants of an engine that has engaged none.
func newTenants() *tenants {
	return &tenants{engaged: map[multicluster.ClusterName]*engagement{}}
}

// get returns the engagement of a tenant; nil if the tenant is not engaged.
func (t *tenants) get(name multicluster.ClusterName) *engagement {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.engaged[name]
}

// Count returns how many tenants are engaged.
func (t *tenants) Count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.engaged)
}

// each calls f with every engaged tenant, without the lock.
func (t *tenants) each(f func(*engagement)) {
	t.mu.RLock()
	all := make([]*engagement, 0, len(t.engaged))
	for _, s := range t.engaged {
		all = append(all, s)
	}
	t.mu.RUnlock()
	for _, s := range all {
		f(s)
	}
}

// EachPatrolled calls f with the patrol's part of every engaged tenant.
func (t *tenants) EachPatrolled(f func(*patrol.Tenant)) {
	t.each(func(s *engagement) { f(s.patrolled) })
}

// replace stores the engagement that f returns for the one so far, which is nil
// if the tenant is not engaged.
func (t *tenants) replace(name multicluster.ClusterName, f func(was *engagement) (*engagement, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := f(t.engaged[name])
	if err == nil {
		t.engaged[name] = now
	}
	return err
}

// remove removes an engagement and calls f, unless the tenant has another one.
func (t *tenants) remove(name multicluster.ClusterName, s *engagement, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.engaged[name] == s {
		delete(t.engaged, name)
		f()
	}
}

// ifCurrent calls f with the lane of an engagement, unless the tenant has
// another one.
func (t *tenants) ifCurrent(s *engagement, f func(lane string)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if lane := s.Lane(); t.engaged[multicluster.ClusterName(lane)] == s {
		f(lane)
	}
}

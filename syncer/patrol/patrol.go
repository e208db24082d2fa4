// Package patrol compares both sides of all objects at an interval, and
// enqueues those that differ. If no event is missed, none does.
package patrol

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtualcluster/virtualcluster/internal/pause"
)

// settling is how long a difference has to last before it is enqueued: an
// object that is being synced differs for a moment.
const settling = 2 * time.Second

// Patrol compares the objects of all engaged tenants.
type Patrol struct {
	tenants  tenants
	interval time.Duration
	metrics  *Metrics
}

// tenants are the engaged tenants.
type tenants interface {
	// Count returns how many tenants are engaged.
	Count() int
	// EachPatrolled calls f with every engaged tenant.
	EachPatrolled(f func(*Tenant))
}

// New returns the patrol of engaged tenants, which compares them at an
// interval.
func New(all tenants, interval time.Duration, metrics *Metrics) *Patrol {
	return &Patrol{tenants: all, interval: interval, metrics: metrics}
}

// Run patrols until ctx ends.
func (p *Patrol) Run(ctx context.Context) {
	// The rounds of several syncers come at different times.
	for pause.For(ctx, wait.Jitter(p.interval, 0.2)) {
		began, suspects := time.Now(), map[*Tenant]Differences{}
		budget := budgetOf(p.interval, p.tenants.Count())
		p.tenants.EachPatrolled(func(t *Tenant) {
			if found := t.round(ctx, budget); len(found) > 0 {
				suspects[t] = found
			}
		})
		p.metrics.observe(began)
		if len(suspects) == 0 {
			continue
		}
		if !pause.For(ctx, settling) {
			return
		}
		for t, found := range suspects {
			t.enqueue(ctx, found)
		}
	}
}

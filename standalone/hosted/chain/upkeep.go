package chain

import (
	"context"
	"sync"
	"time"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

const (
	// upkeepDelay coalesces deletions, and upkeepRetry follows a failure. The
	// loops of upstream check every ten seconds.
	upkeepDelay   = time.Second
	upkeepRetry   = 10 * time.Second
	upkeepTimeout = time.Minute
)

// upkeep repairs objects of a tenant after changes, as upstream's loops do:
// those that every cluster has, and the APIServices of its local APIs. Nothing
// runs for it between changes.
type upkeep struct {
	life   context.Context
	repair func(context.Context) error
	failed func(error)

	mu      sync.Mutex // guards all below
	begun   bool
	due     *time.Timer // nil if no repair is due
	ended   bool
	running sync.WaitGroup
}

// begin enables repairs, when the objects have been created for the first time.
func (u *upkeep) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.begun = true
}

// isBegun reports whether the objects have been created since the start.
func (u *upkeep) isBegun() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.begun
}

// request has the objects repaired soon.
func (u *upkeep) request(after time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.begun && !u.ended && u.due == nil {
		u.due = time.AfterFunc(after, u.run)
	}
}

func (u *upkeep) run() {
	u.mu.Lock()
	u.due = nil // a deletion from now on has its own repair
	if u.ended {
		u.mu.Unlock()
		return
	}
	u.running.Add(1)
	u.mu.Unlock()
	defer u.running.Done()
	ctx, cancel := context.WithTimeout(u.life, upkeepTimeout)
	defer cancel()
	if err := u.repairOnce(ctx); err != nil && u.life.Err() == nil {
		u.failed(err)
		u.request(upkeepRetry)
	}
}

// repairOnce repairs the objects. A panic is an error.
func (u *upkeep) repairOnce(ctx context.Context) (err error) {
	defer views.Recovered(func(panicked error) { err = panicked })
	return u.repair(ctx)
}

// end ends repairs. The life of the tenant has ended.
func (u *upkeep) end() {
	u.mu.Lock()
	u.ended = true
	if u.due != nil {
		u.due.Stop()
	}
	u.mu.Unlock()
	u.running.Wait()
}

// watchDeletions requests repairs after deletions. It is called by the feed, and
// must not block.
func (c *Chain) watchDeletions(name, resource string, kind feed.Kind) {
	switch {
	case kind == feed.Missed:
		c.mu.RLock()
		defer c.mu.RUnlock()
		for _, t := range c.tenants {
			t.upkeep.request(upkeepDelay)
		}
	case kind == feed.Deleted && isUpkept(resource):
		c.mu.RLock()
		defer c.mu.RUnlock()
		if t := c.tenants[name]; t != nil {
			t.upkeep.request(upkeepDelay)
		}
	}
}

// isUpkept reports whether every cluster has objects of a resource that are
// created again after their deletion.
func isUpkept(resource string) bool {
	switch resource {
	case "namespaces", "services/specs", "services/endpoints", "endpointslices", "servicecidrs", "configmaps":
		return true
	default:
		return false
	}
}

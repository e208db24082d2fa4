package controllers

import (
	"sync"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// Changes tells the controllers of many tenants which resources have changed.
type Changes struct {
	feed *feed.Feed
	stop func()

	mu sync.RWMutex // guards all below
	by map[string]*ByNeed
}

// NewChanges returns the changes of a feed, until they are closed.
func NewChanges(source *feed.Feed) *Changes {
	c := &Changes{feed: source, by: map[string]*ByNeed{}}
	c.stop = source.Observe(c.observe)
	return c
}

// Close ends the observation.
func (c *Changes) Close() { c.stop() }

// observe is called in the goroutine of the feed.
func (c *Changes) observe(tenant, resource string, kind feed.Kind) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if kind == feed.Missed {
		for _, b := range c.by {
			b.note("")
		}
		return
	}
	if b := c.by[tenant]; b != nil {
		b.note(resource)
	}
}

func (c *Changes) add(b *ByNeed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[b.tenant] = b
}

func (c *Changes) remove(b *ByNeed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[b.tenant] == b {
		delete(c.by, b.tenant)
	}
}

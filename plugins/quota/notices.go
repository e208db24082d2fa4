package quota

import (
	"context"
	"slices"
	"sync"
	"time"
)

// notices is a set of tenants to process.
type notices struct {
	wake chan struct{}

	mu      sync.Mutex
	tenants map[string]bool
}

func newNotices() *notices {
	return &notices{wake: make(chan struct{}, 1), tenants: map[string]bool{}}
}

// put adds a tenant. It never blocks.
func (n *notices) put(tenant string) {
	n.mu.Lock()
	n.tenants[tenant] = true
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// each calls f with every tenant in the set until ctx is done. Between rounds
// it waits for rest, so that many notices of a tenant result in one call.
func (n *notices) each(ctx context.Context, rest time.Duration, f func(tenant string)) {
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return
		}
		for _, tenant := range n.take() {
			f(tenant)
		}
	}
}

// take removes the tenants and returns them in order.
func (n *notices) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]string, 0, len(n.tenants))
	for tenant := range n.tenants {
		all = append(all, tenant)
	}
	clear(n.tenants)
	slices.Sort(all)
	return all
}

package engine

import (
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A refused object is tried again after refusedFirst, then after twice as long each time, up to refusedMost: somebody has to
// act first.
const (
	refusedFirst = time.Second
	refusedMost  = time.Minute
)

// refusals remembers how long each refused object of a tenant waits before it is tried again.
type refusals struct {
	// count is told of objects that become refused, or are no more.
	count func(kind string, by int)

	mu    sync.Mutex
	delay map[objectKey]time.Duration
	ended bool
}

func newRefusals(count func(kind string, by int)) *refusals {
	return &refusals{count: count, delay: map[objectKey]time.Duration{}}
}

// next is how long the object waits this time.
func (r *refusals) next(kind string, key client.ObjectKey) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := objectKey{kind, key}
	was := r.delay[k]
	next := min(max(2*was, refusedFirst), refusedMost)
	if r.ended {
		return next
	}
	if was == 0 {
		r.count(kind, 1)
	}
	r.delay[k] = next
	return next
}

// clear forgets an object that was not refused this time.
func (r *refusals) clear(kind string, key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := objectKey{kind, key}
	if r.delay[k] > 0 {
		r.count(kind, -1)
		delete(r.delay, k)
	}
}

// end forgets all, for good: the tenant is gone.
func (r *refusals) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.delay {
		r.count(k.kind, -1)
	}
	clear(r.delay)
	r.ended = true
}

// waits says whether the object is refused for now.
func (r *refusals) waits(kind string, key client.ObjectKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delay[objectKey{kind, key}] > 0
}

// all are the objects that are refused for now.
func (r *refusals) all() []objectKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.delay))
}

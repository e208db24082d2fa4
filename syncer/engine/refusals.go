package engine

import (
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

// refusals remembers how long each refused object waits before it is tried again. The zero value is ready.
type refusals struct {
	mu    sync.Mutex
	delay map[objectKey]time.Duration
}

// next is how long the object waits this time.
func (r *refusals) next(kind string, key client.ObjectKey) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.delay == nil {
		r.delay = map[objectKey]time.Duration{}
	}
	k := objectKey{kind, key}
	r.delay[k] = min(max(2*r.delay[k], refusedFirst), refusedMost)
	return r.delay[k]
}

// clear forgets an object that was not refused this time.
func (r *refusals) clear(kind string, key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.delay, objectKey{kind, key})
}

// waits says whether the object is refused for now.
func (r *refusals) waits(kind string, key client.ObjectKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delay[objectKey{kind, key}] > 0
}

package engine

import (
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// parked are the objects of a tenant that are not carried for now, each with what is remembered of it.
type parked[T any] struct {
	// count is told of objects that become parked, or are no more.
	count func(kind string, by int)

	mu    sync.Mutex
	known map[objectKey]T
	ended bool
}

func newParked[T any](count func(kind string, by int)) *parked[T] {
	return &parked[T]{count: count, known: map[objectKey]T{}}
}

// put notes that an object is parked, and makes what is remembered of it out of what was; of one that was not parked, that is the
// zero value.
func (p *parked[T]) put(kind string, key client.ObjectKey, remember func(was T) T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := objectKey{kind, key}
	was, known := p.known[k]
	now := remember(was)
	if p.ended {
		return now
	}
	if !known {
		p.count(kind, 1)
	}
	p.known[k] = now
	return now
}

// note remembers something else of an object that is still parked.
func (p *parked[T]) note(kind string, key client.ObjectKey, now T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := (objectKey{kind, key}); p.lockedHas(k) {
		p.known[k] = now
	}
}

// clear forgets an object that was carried this time.
func (p *parked[T]) clear(kind string, key client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := (objectKey{kind, key}); p.lockedHas(k) {
		p.count(kind, -1)
		delete(p.known, k)
	}
}

// end forgets all, for good: the tenant is gone.
func (p *parked[T]) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.known {
		p.count(k.kind, -1)
	}
	clear(p.known)
	p.ended = true
}

// has says whether an object is parked.
func (p *parked[T]) has(kind string, key client.ObjectKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lockedHas(objectKey{kind, key})
}

func (p *parked[T]) lockedHas(k objectKey) bool {
	_, known := p.known[k]
	return known
}

// any returns one of the objects of a kind that are parked.
func (p *parked[T]) any(kind string) (client.ObjectKey, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.known {
		if k.kind == kind {
			return k.key, true
		}
	}
	return client.ObjectKey{}, false
}

// all are the objects that are parked.
func (p *parked[T]) all() []objectKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.known))
}

package pending

import (
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Set are the objects of a tenant that are not synced for now, each with what is remembered of it.
type Set[T any] struct {
	// count is told of objects that become pending, or are no more.
	count func(kind string, by int)

	mu    sync.Mutex
	known map[kinds.ObjectKey]T
	ended bool
}

func newSet[T any](count func(kind string, by int)) *Set[T] {
	return &Set[T]{count: count, known: map[kinds.ObjectKey]T{}}
}

// put notes that an object is pending, and makes what is remembered of it out of what was; of one that was not pending, that is the
// zero value.
func (p *Set[T]) put(kind string, key client.ObjectKey, remember func(was T) T) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := kinds.ObjectKey{Kind: kind, Key: key}
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

// Note remembers something else of an object that is still pending.
func (p *Set[T]) Note(kind string, key client.ObjectKey, now T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := (kinds.ObjectKey{Kind: kind, Key: key}); p.lockedHas(k) {
		p.known[k] = now
	}
}

// Clear forgets an object that was synced this time.
func (p *Set[T]) Clear(kind string, key client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := (kinds.ObjectKey{Kind: kind, Key: key}); p.lockedHas(k) {
		p.count(kind, -1)
		delete(p.known, k)
	}
}

// End forgets all, for good: the tenant is gone.
func (p *Set[T]) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.known {
		p.count(k.Kind, -1)
	}
	clear(p.known)
	p.ended = true
}

// Has says whether an object is pending.
func (p *Set[T]) Has(kind string, key client.ObjectKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lockedHas(kinds.ObjectKey{Kind: kind, Key: key})
}

func (p *Set[T]) lockedHas(k kinds.ObjectKey) bool {
	_, known := p.known[k]
	return known
}

// Any returns one of the objects of a kind that are pending.
func (p *Set[T]) Any(kind string) (client.ObjectKey, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.known {
		if k.Kind == kind {
			return k.Key, true
		}
	}
	return client.ObjectKey{}, false
}

// All are the objects that are pending.
func (p *Set[T]) All() []kinds.ObjectKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.known))
}

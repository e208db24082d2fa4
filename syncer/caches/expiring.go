package caches

import "time"

// Expiring is a map whose entries expire, and of which only the latest are kept
// if they are many: tenants decide how many there are. It is not safe for
// concurrent use.
//
// Entries are in two generations, of which the older one is dropped as a whole.
type Expiring[K comparable, V any] struct {
	// Lifetime is how long entries are valid.
	Lifetime time.Duration
	// Most is the maximum number of entries in a generation. At least that
	// number of the latest are kept.
	Most int

	young, old map[K]dated[V]
	began      time.Time // of the young generation
	last       time.Time // of its entries
}

// dated is an entry.
type dated[V any] struct {
	value V
	at    time.Time
}

// Put adds an entry, or renews it.
func (e *Expiring[K, V]) Put(key K, value V, now time.Time) {
	e.Sweep(now)
	if len(e.young) >= e.Most {
		e.rotate(now)
	}
	if e.young == nil {
		e.young = map[K]dated[V]{}
	}
	e.young[key], e.last = dated[V]{value, now}, now
}

// Get returns an entry that has not expired.
func (e *Expiring[K, V]) Get(key K, now time.Time) (V, bool) {
	found, ok := e.young[key]
	if !ok {
		found, ok = e.old[key]
	}
	if !ok || now.Sub(found.at) > e.Lifetime {
		var none V
		return none, false
	}
	return found.value, true
}

// Sweep drops entries that have expired. Without it, those of an idle map would
// stay for ever.
func (e *Expiring[K, V]) Sweep(now time.Time) {
	if now.Sub(e.began) > e.Lifetime {
		e.rotate(now)
	}
}

// rotate drops the old generation.
func (e *Expiring[K, V]) rotate(now time.Time) {
	if now.Sub(e.last) > e.Lifetime {
		e.young = nil
	}
	e.old, e.young, e.began = e.young, nil, now
}

// Len returns the number of entries, including those that have expired and are
// not dropped yet.
func (e *Expiring[K, V]) Len() int { return len(e.young) + len(e.old) }

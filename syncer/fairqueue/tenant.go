package fairqueue

import "container/heap"

// config holds the settings of a tenant. It outlives the tenant's lane.
type config struct {
	weight int32
	paused bool
	slow   bool
}

// defaultConfig returns the config of a tenant without settings.
func defaultConfig() config { return config{weight: 1} }

func (q *Queue[T]) lockedConfig(tenant string) config {
	if c, ok := q.configs[tenant]; ok {
		return c
	}
	return defaultConfig()
}

func (q *Queue[T]) lockedConfigure(tenant string, c config) {
	if c == defaultConfig() {
		delete(q.configs, tenant)
	} else {
		q.configs[tenant] = c
	}
	if l := q.lanes[tenant]; l != nil {
		l.config = c
		q.lockedMove(l, q.lockedClass(c))
		q.lockedSettle(l)
	}
}

// SetWeight sets how many keys of a tenant are served for each key of a tenant
// of weight 1, from its next key on. Values below 1 count as 1, the default.
func (q *Queue[T]) SetWeight(tenant string, weight int32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.lockedConfig(tenant)
	c.weight = max(weight, 1)
	q.lockedConfigure(tenant, c)
}

// Pause stops handing out a tenant's keys. They can still be added, and keys in
// flight are not affected. Pauses are not counted: one Resume ends them.
func (q *Queue[T]) Pause(tenant string) { q.setPaused(tenant, true) }

// Resume ends a pause.
func (q *Queue[T]) Resume(tenant string) { q.setPaused(tenant, false) }

func (q *Queue[T]) setPaused(tenant string, paused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.lockedConfig(tenant)
	c.paused = paused
	q.lockedConfigure(tenant, c)
}

// Drop deletes the settings of a tenant, its keys, delays and failures, and its
// debt. Keys in flight stay in flight until Done and count against the cap, so
// that no key of a tenant that comes back is handed to two workers. The queue
// does not remember that the tenant was dropped: keys that are added later, for
// example by a worker that retries, are handed out, and their reconcile should
// find no tenant and return without an error.
func (q *Queue[T]) Drop(tenant string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lanes[tenant]; l != nil {
		for e := l.items.head; e != nil; {
			it := e.value
			e = e.next // before the item is released
			q.lockedDrop(it)
		}
	}
	q.lockedConfigure(tenant, defaultConfig())
	if l := q.lanes[tenant]; l != nil && l.owes {
		q.lockedForgive(l)
	}
}

// lockedDrop clears the state of an item, except that it may be in flight. The
// caller settles the lane.
func (q *Queue[T]) lockedDrop(it *item[T]) {
	switch it.state {
	case delayed:
		heap.Remove(&q.delays, it.slot)
	case ready:
		it.lane.remove(it)
		q.ready--
	case idle, held:
	}
	it.state, it.failures = idle, 0
	q.lockedRelease(it)
}

// LaneLen returns the number of keys of a tenant that are due and wait for a
// worker.
func (q *Queue[T]) LaneLen(tenant string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lanes[tenant]; l != nil {
		return l.ready
	}
	return 0
}

// InFlight returns the number of keys of a tenant in flight.
func (q *Queue[T]) InFlight(tenant string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lanes[tenant]; l != nil {
		return l.inFlight
	}
	return 0
}

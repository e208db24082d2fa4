package fairqueue

import "container/heap"

// config is what can be set for a tenant. It outlives the tenant's lane.
type config struct {
	weight int32
	paused bool
	slow   bool
}

// defaultConfig is the config of a tenant that none was set for.
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

// SetWeight sets how many keys a tenant gets for one of a tenant of weight 1,
// once its next key is handed out. Less than 1 counts as 1, the default.
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

// Resume hands out a tenant's keys again.
func (q *Queue[T]) Resume(tenant string) { q.setPaused(tenant, false) }

func (q *Queue[T]) setPaused(tenant string, paused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.lockedConfig(tenant)
	c.paused = paused
	q.lockedConfigure(tenant, c)
}

// Drop forgets a tenant: its weight, pause and slowness, its keys, delays and
// failures, and its debt. Keys in flight stay their workers' until Done and count
// against the cap, so that a tenant that comes back has no key in two workers'
// hands. The queue does not know that a tenant is gone: what is added after
// Drop, by a worker that retries for instance, is handed out, and its reconcile
// should find no tenant and end without an error.
func (q *Queue[T]) Drop(tenant string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lanes[tenant]; l != nil {
		for e := l.items.head; e != nil; {
			it := e.value
			e = e.next // before it is released
			q.lockedWithdraw(it)
		}
	}
	q.lockedConfigure(tenant, defaultConfig())
	if l := q.lanes[tenant]; l != nil && l.owes {
		q.lockedForgive(l)
	}
}

// lockedWithdraw forgets an item but for the worker that has it. The caller
// settles the lane.
func (q *Queue[T]) lockedWithdraw(it *item[T]) {
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

// LaneLen returns how many keys of a tenant are due and wait for a worker.
func (q *Queue[T]) LaneLen(tenant string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lanes[tenant]; l != nil {
		return l.ready
	}
	return 0
}

// InFlight returns how many keys of a tenant are in workers' hands.
func (q *Queue[T]) InFlight(tenant string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lanes[tenant]; l != nil {
		return l.inFlight
	}
	return 0
}

package fairqueue

import (
	"container/heap"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// Add enqueues a key without delay, at priority 0.
func (q *Queue[T]) Add(key T) {
	q.AddWithOpts(priorityqueue.AddOpts{}, key)
}

// AddAfter enqueues a key after a delay, at priority 0.
func (q *Queue[T]) AddAfter(key T, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited counts a failure of a key and enqueues it after its backoff,
// at priority 0.
func (q *Queue[T]) AddRateLimited(key T) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, key)
}

// AddWithOpts enqueues keys. A key that is enqueued already keeps the highest
// of its priorities and the shortest of its delays; one that is raised to
// another level (above, at, or below 0) goes to the end of that level. With
// both After and RateLimited the shorter delay counts.
func (q *Queue[T]) AddWithOpts(o priorityqueue.AddOpts, keys ...T) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.phase != running {
		return
	}
	for _, key := range keys {
		q.lockedAdd(q.lockedItem(key), now, o)
	}
}

func (q *Queue[T]) lockedAdd(it *item[T], now time.Time, o priorityqueue.AddOpts) {
	priority := 0
	if o.Priority != nil {
		priority = *o.Priority
	}
	if it.state == idle {
		it.priority = priority
	} else if priority > it.priority {
		it.raise(priority)
	}
	if after := q.lockedAfter(it, o); after > 0 {
		q.lockedDelay(it, now.Add(after))
	} else {
		q.lockedDue(it, now)
	}
}

func (it *item[T]) raise(priority int) {
	if it.state == ready && levelOf(priority) != levelOf(it.priority) {
		it.lane.remove(it)
		it.priority = priority
		it.lane.push(it)
	}
	it.priority = priority
}

// lockedAfter returns the delay for o, and counts the failure if o is rate
// limited.
func (q *Queue[T]) lockedAfter(it *item[T], o priorityqueue.AddOpts) time.Duration {
	if !o.RateLimited {
		return o.After
	}
	backoff := q.opts.backoff(it.failures)
	it.failures++
	if o.After > 0 {
		return min(o.After, backoff)
	}
	return backoff
}

// lockedDue makes an item ready, or held if a worker is processing it.
func (q *Queue[T]) lockedDue(it *item[T], at time.Time) {
	switch it.state {
	case ready, held:
		return
	case delayed:
		heap.Remove(&q.delays, it.slot)
	case idle:
	}
	it.at = at
	if it.inFlight {
		it.state = held
		return
	}
	q.lockedPush(it)
}

// lockedPush puts an item that is not in flight into its lane.
func (q *Queue[T]) lockedPush(it *item[T]) {
	it.lane.push(it)
	q.ready++
	q.lockedSettle(it.lane)
}

// Forget clears the failures of a key. It does not remove the key from the
// queue.
func (q *Queue[T]) Forget(key T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.items[key]
	if it == nil {
		return
	}
	it.failures = 0
	l := it.lane
	q.lockedRelease(it)
	q.lockedSettle(l)
}

// NumRequeues returns how often a key was added rate limited since it was last
// forgotten.
func (q *Queue[T]) NumRequeues(key T) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.items[key]; it != nil {
		return it.failures
	}
	return 0
}

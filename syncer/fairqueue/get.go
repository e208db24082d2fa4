package fairqueue

import "time"

// Get is GetWithPriority without the priority.
func (q *Queue[T]) Get() (key T, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

// GetWithPriority waits for the next key and returns it with its priority. The
// worker must call [Queue.Done] when it has processed the key. After a shutdown
// it returns no keys.
func (q *Queue[T]) GetWithPriority() (key T, priority int, shutdown bool) {
	q.mu.Lock()
	for q.lockedNext() == nil && q.phase != stopped {
		q.work.Wait()
	}
	if q.phase == stopped {
		q.mu.Unlock()
		return key, 0, true
	}
	it := q.lockedTake()
	// The records may be reused once q.mu is unlocked.
	key, priority = it.key, it.priority
	tenant, weight, at := it.lane.tenant, it.lane.weight, it.at
	q.mu.Unlock()

	if q.opts.Observe != nil {
		q.opts.Observe(Wait{tenant, weight, priority, time.Since(at)})
	}
	return key, priority, false
}

// lockedTake moves the next item into flight. There must be one.
func (q *Queue[T]) lockedTake() *item[T] {
	l := q.lockedTurn()
	it := l.take()
	q.ready--
	q.inFlight++
	q.lockedSettle(l)
	return it
}

// Done marks a key as processed. If the key was added meanwhile, it becomes
// ready. Done does nothing for a key that is not in flight.
func (q *Queue[T]) Done(key T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.lockedInFlight(key)
	if it == nil {
		return
	}
	l := it.lane
	it.inFlight = false
	l.inFlight--
	l.class.inFlight--
	q.inFlight--
	if l.class.limit > 0 && l.class.seated() > 0 {
		q.work.Signal() // this worker may take a key of the other class
	}
	if it.state == held {
		q.lockedPush(it)
		return
	}
	q.lockedRelease(it)
	q.lockedSettle(l)
}

// lockedInFlight returns the record of a key in flight; nil if it is not.
func (q *Queue[T]) lockedInFlight(key T) *item[T] {
	if it := q.items[key]; it != nil && it.inFlight {
		return it
	}
	return nil
}

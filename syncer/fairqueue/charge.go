package fairqueue

import "container/heap"

// Charge makes a key in flight count as more additional keys, because it turned
// out to be expensive: the next turn of its tenant comes later. It must be
// called before [Queue.Done]; for a key that is not in flight it does nothing.
func (q *Queue[T]) Charge(key T, more int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.lockedInFlight(key)
	if it == nil {
		return
	}
	l := it.lane
	l.pass += int64(more) * l.stride()
	if l.seat > 0 {
		heap.Fix(l.row, l.slot)
	}
}

// lockedLeave releases a lane that has no items, unless its tenant was charged
// for more than others have used since. Without this, tenants whose lanes come
// and go would pay less than those that always have work.
func (q *Queue[T]) lockedLeave(l *lane[T]) {
	switch {
	case l.owes:
	case l.pass > l.class.pass+l.stride():
		l.owes, l.skipped = true, 0
		heap.Push(&l.class.owing, l)
	default:
		q.lockedReleaseLane(l)
	}
}

// lockedReturn takes a lane that gets an item out of the owing lanes.
func (q *Queue[T]) lockedReturn(l *lane[T]) {
	if l.owes {
		l.owes = false
		heap.Remove(&l.class.owing, l.slot)
	}
}

// lockedCatchUp releases the owing lanes that others have caught up with.
func (q *Queue[T]) lockedCatchUp(c *class[T]) {
	for len(c.owing) > 0 && c.owing[0].pass <= c.pass {
		q.lockedForgive(c.owing[0])
	}
}

// lockedForgive releases an owing lane.
func (q *Queue[T]) lockedForgive(l *lane[T]) {
	q.lockedReturn(l)
	q.lockedReleaseLane(l)
}

func (q *Queue[T]) lockedReleaseLane(l *lane[T]) {
	delete(q.lanes, l.tenant)
	q.spareLanes.put(l)
}

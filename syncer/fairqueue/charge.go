package fairqueue

import "container/heap"

// Charge has a key that a worker has count as so many more, for what it turned
// out to cost: its tenant's next turn comes later. It must come before
// [Queue.Done]; of a key that no worker has it does nothing.
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

// lockedLeave is told that a lane has no items. It is given back, unless its
// tenant was charged for more than others have had since: those that come and go
// pay like those that wait all the time.
func (q *Queue[T]) lockedLeave(l *lane[T]) {
	switch {
	case l.owes:
	case l.pass > l.class.pass+l.stride():
		l.owes, l.skipped = true, 0
		heap.Push(&l.class.owing, l)
	default:
		q.lockedGiveBack(l)
	}
}

// lockedReturn is told that a lane gets an item.
func (q *Queue[T]) lockedReturn(l *lane[T]) {
	if l.owes {
		l.owes = false
		heap.Remove(&l.class.owing, l.slot)
	}
}

// lockedCatchUp gives back the lanes of those that others have caught up with.
func (q *Queue[T]) lockedCatchUp(c *class[T]) {
	for len(c.owing) > 0 && c.owing[0].pass <= c.pass {
		q.lockedForgive(c.owing[0])
	}
}

// lockedForgive gives back the lane of one that owes.
func (q *Queue[T]) lockedForgive(l *lane[T]) {
	q.lockedReturn(l)
	q.lockedGiveBack(l)
}

func (q *Queue[T]) lockedGiveBack(l *lane[T]) {
	delete(q.lanes, l.tenant)
	q.spareLanes.put(l)
}

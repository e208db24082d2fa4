package fairqueue

import "container/heap"

// round is the stride of weight 1, and so the stretch of passes in which a lane
// that always waits is served as many times as its weight says.
//
// All weights up to 16 divide it, so that these share exactly; of those up to
// 1000, rounding down takes less than two thousandths of a round. A key adds no
// more than a round to the highest pass that was served, and as much for each
// that it is charged: an int64 lasts for 2^63/720,720 of them, which is 4 years at
// 100,000 a second.
const round = 720_720

// stride is how far a lane's passes are apart. It is never 0, or a lane of a huge
// weight would keep the lowest pass for ever.
func (l *lane[T]) stride() int64 {
	return max(1, round/int64(l.weight))
}

// lockedTurn takes the lane that has the turn from its seat; there must be one.
// lockedSettle gives it the next.
func (q *Queue[T]) lockedTurn() *lane[T] {
	l := q.lockedNext()
	q.lockedUnseat(l)
	l.class.pass = max(l.class.pass, l.pass)
	l.pass += l.stride()
	q.lockedCatchUp(l.class)
	return l
}

// lockedSeat gives a lane a seat, moves it to another row, or takes its seat
// away.
//
// A lane that begins to wait stands one stride behind, as if it had just been
// served: whoever comes and goes gains nothing over those that wait all the
// time. A lane that only its cap interrupted keeps its pass, or a small cap
// would undo its weight. It makes up for one round at most, so that a tenant
// whose keys were in flight for long does not keep others waiting as long.
func (q *Queue[T]) lockedSeat(l *lane[T], open bool) {
	waits := l.ready > 0 && !l.paused
	if waits && !l.joined {
		l.pass = max(l.pass, l.class.pass+l.stride())
	}
	l.joined = waits
	row := l.class.row(l)
	if open && l.row == row {
		return
	}
	q.lockedUnseat(l)
	if open {
		l.pass = max(l.pass, l.class.pass-round)
		q.seated++
		l.seat, l.row = q.seated, row
		heap.Push(row, l)
	}
}

// lockedUnseat takes a lane's seat away, if it has one.
func (q *Queue[T]) lockedUnseat(l *lane[T]) {
	if l.seat > 0 {
		heap.Remove(l.row, l.slot)
		l.seat, l.row = 0, nil
	}
}

// before says whether a lane's turn comes before another's: its pass is lower or,
// of equal ones, it was seated first.
func (l *lane[T]) before(other *lane[T]) bool {
	return l.pass < other.pass || (l.pass == other.pass && l.seat < other.seat)
}

func (l *lane[T]) setSlot(slot int) { l.slot = slot }

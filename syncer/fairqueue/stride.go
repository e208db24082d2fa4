package fairqueue

import "container/heap"

// round is the stride of weight 1, and so the range of passes in which a lane
// that always waits is served as many times as its weight.
//
// All weights up to 16 divide it, so that these shares are exact; for weights
// up to 1000, the error by rounding is less than two thousandths of a round. A
// key adds at most a round to the highest pass that was served, and as much for
// each key that it is charged as: an int64 lasts for 2^63/720,720 keys, which
// is 4 years at 100,000 a second.
const round = 720_720

// stride is the distance between a lane's passes. It is never 0, so that a lane
// with a huge weight does not keep the lowest pass for ever.
func (l *lane[T]) stride() int64 {
	return max(1, round/int64(l.weight))
}

// lockedTurn takes the seat of the lane to serve next and advances its pass;
// there must be one. lockedSettle gives it another seat.
func (q *Queue[T]) lockedTurn() *lane[T] {
	l := q.lockedNext()
	q.lockedUnseat(l)
	l.class.pass = max(l.class.pass, l.pass)
	l.pass += l.stride()
	q.lockedCatchUp(l.class)
	return l
}

// lockedSeat gives a lane a seat, moves it to another row, or removes its seat.
//
// A lane that begins to wait is one stride behind, as if it had just been
// served, so that a tenant whose lane comes and goes has no advantage over
// those that always wait. A lane that was only interrupted by its cap keeps its
// pass; otherwise a small cap would nullify its weight. It makes up for at most
// one round, so that a tenant whose keys were in flight for long does not delay
// others as long.
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

// lockedUnseat removes a lane's seat, if it has one.
func (q *Queue[T]) lockedUnseat(l *lane[T]) {
	if l.seat > 0 {
		heap.Remove(l.row, l.slot)
		l.seat, l.row = 0, nil
	}
}

// before reports whether a lane's turn comes before another's: its pass is
// lower or, if the passes are equal, it got its seat first.
func (l *lane[T]) before(other *lane[T]) bool {
	return l.pass < other.pass || (l.pass == other.pass && l.seat < other.seat)
}

func (l *lane[T]) setSlot(slot int) { l.slot = slot }

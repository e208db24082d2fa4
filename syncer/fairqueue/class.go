package fairqueue

// class is the lanes that share a number of workers: those of tenants that
// answer fast, or of those that answer slowly. Each class has its own clock of
// passes, so that the lanes of one wait for no lane of the other.
type class[T comparable] struct {
	// limit is how many keys of the class may be in flight, 0 for any number.
	limit int
	// shared is how many may be in flight when a lane gets a second worker, 0
	// for any number. Beyond, each lane gets one worker at most.
	shared   int
	inFlight int
	// seats are the lanes with something to hand out, the next on top. Where
	// shared is set, those that have a key in flight have the second row.
	seats [2]order[*lane[T]]
	// owing are the lanes without items whose tenants owe, the first to be even
	// on top.
	owing order[*lane[T]]
	// pass is the highest pass at which a lane was served.
	pass int64
}

// next returns the lane that has the turn, nil if none can be served.
func (c *class[T]) next() *lane[T] {
	if c.limit > 0 && c.inFlight >= c.limit {
		return nil
	}
	first, second := c.seats[0].top(), c.seats[1].top()
	switch {
	case second == nil || c.inFlight >= c.shared:
		return first
	case first == nil || second.before(first):
		return second
	}
	return first
}

// row returns the row of seats that a lane belongs to.
func (c *class[T]) row(l *lane[T]) *order[*lane[T]] {
	if c.shared > 0 && l.inFlight > 0 {
		return &c.seats[1]
	}
	return &c.seats[0]
}

// seated returns how many lanes have something to hand out.
func (c *class[T]) seated() int { return len(c.seats[0]) + len(c.seats[1]) }

func (q *Queue[T]) lockedClass(c config) *class[T] {
	if c.slow {
		return &q.slow
	}
	return &q.fast
}

// lockedNext returns the lane to serve next, nil if there is none.
func (q *Queue[T]) lockedNext() *lane[T] {
	if l := q.fast.next(); l != nil {
		return l
	}
	return q.slow.next()
}

// lockedMove moves a lane to another class, with its lead or lag, and counts
// its keys in flight there. lockedSettle must follow.
func (q *Queue[T]) lockedMove(l *lane[T], to *class[T]) {
	from := l.class
	if from == to {
		return
	}
	q.lockedReturn(l)
	q.lockedUnseat(l)
	from.inFlight -= l.inFlight
	to.inFlight += l.inFlight
	l.pass += to.pass - from.pass
	l.class = to
	for range min(l.inFlight, from.seated()) {
		q.work.Signal()
	}
}

// SetSlow sets whether a tenant answers slowly. The keys of slow tenants have
// workers of their own, so that other tenants keep theirs, however many tenants
// are slow. It takes effect on keys in flight as well: their workers no longer
// count as those of fast tenants.
func (q *Queue[T]) SetSlow(tenant string, slow bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.lockedConfig(tenant)
	c.slow = slow
	q.lockedConfigure(tenant, c)
}

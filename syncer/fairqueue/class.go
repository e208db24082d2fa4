package fairqueue

// class is the set of lanes that share a number of workers: those of fast
// tenants, or those of slow tenants. Each class has its own clock of passes, so
// that lanes of one class never wait for lanes of the other.
type class[T comparable] struct {
	// limit is the maximum number of keys of the class in flight, 0 for no
	// limit.
	limit int
	// shared is the number of keys in flight up to which a lane can get more
	// than one worker, 0 for no limit. Above it, each lane gets at most one.
	shared   int
	inFlight int
	// seats are the lanes with keys that can be handed out, the next on top. If
	// shared is set, lanes with a key in flight are in the second row.
	seats [2]order[*lane[T]]
	// owing are the lanes without items whose tenants owe, the one that is even
	// first on top.
	owing order[*lane[T]]
	// pass is the highest pass at which a lane was served.
	pass int64
}

// next returns the lane to serve next; nil if none can be served.
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

// seated returns the number of lanes with keys that can be handed out.
func (c *class[T]) seated() int { return len(c.seats[0]) + len(c.seats[1]) }

func (q *Queue[T]) lockedClass(c config) *class[T] {
	if c.slow {
		return &q.slow
	}
	return &q.fast
}

// lockedNext returns the lane to serve next; nil if there is none.
func (q *Queue[T]) lockedNext() *lane[T] {
	if l := q.fast.next(); l != nil {
		return l
	}
	return q.slow.next()
}

// lockedMove moves a lane to another class. The lane keeps its lead or lag, and
// its keys in flight count there. lockedSettle must follow.
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

// SetSlow sets whether a tenant is slow. Keys of slow tenants have workers of
// their own, so that other tenants keep theirs, however many tenants are slow.
// It also applies to keys in flight: their workers no longer count as those of
// fast tenants.
func (q *Queue[T]) SetSlow(tenant string, slow bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.lockedConfig(tenant)
	c.slow = slow
	q.lockedConfigure(tenant, c)
}

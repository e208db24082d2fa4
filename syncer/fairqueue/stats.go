package fairqueue

// Stats are what a queue holds at one moment.
type Stats struct {
	// Due are the keys that wait for a worker, Paused those of paused tenants
	// that are due as well.
	Due, Paused int
	// Longest is how many keys of one tenant wait for a worker at most.
	Longest int
	// Delayed are the keys that are not due yet.
	Delayed int
	// InFlight are the keys in workers' hands.
	InFlight int
	// Busy is how many tenants have keys that wait for a worker or that one has.
	Busy int
	// Slow is how many tenants answer slowly.
	Slow int
}

// Stats counts what the queue holds. It reads every lane and every setting once.
func (q *Queue[T]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{Due: q.ready, Delayed: len(q.delays), InFlight: q.inFlight}
	for _, l := range q.lanes {
		if l.paused {
			s.Due -= l.ready
			s.Paused += l.ready
		} else {
			s.Longest = max(s.Longest, l.ready)
		}
		if l.inFlight > 0 || (l.ready > 0 && !l.paused) {
			s.Busy++
		}
	}
	for _, c := range q.configs {
		if c.slow {
			s.Slow++
		}
	}
	return s
}

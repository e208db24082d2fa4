package fairqueue

// Stats is a snapshot of a queue's size.
type Stats struct {
	// Due is the number of keys that wait for a worker, without those of paused
	// tenants, which Paused counts.
	Due, Paused int
	// Longest is the maximum number of keys of one tenant that wait for a
	// worker.
	Longest int
	// Delayed is the number of keys that are not due yet.
	Delayed int
	// InFlight is the number of keys in flight.
	InFlight int
	// Busy is the number of tenants with keys in flight or waiting for a
	// worker.
	Busy int
	// Slow is the number of slow tenants.
	Slow int
}

// Stats returns a snapshot of the queue's size. It visits every lane and every
// config once.
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

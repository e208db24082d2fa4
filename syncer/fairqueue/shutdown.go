package fairqueue

// phase is the phase of the queue's shutdown.
type phase int8

const (
	running phase = iota
	// draining accepts no keys and hands out those that are due.
	draining
	// stopped hands out no keys.
	stopped
)

// ShutDown stops the queue at once: it hands out no more keys, and workers that
// wait for a key return.
func (q *Queue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lockedStop()
}

// ShutDownWithDrain accepts no more keys, waits until all due keys are
// processed, and stops the queue. It does not wait for delayed keys or those of
// paused tenants. ShutDown interrupts it.
func (q *Queue[T]) ShutDownWithDrain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.phase == running {
		q.phase = draining
		q.lockedDisarm()
	}
	for q.phase == draining && (q.fast.seated()+q.slow.seated() > 0 || q.inFlight > 0) {
		q.drained.Wait()
	}
	q.lockedStop()
}

// ShuttingDown reports whether the queue no longer accepts keys.
func (q *Queue[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.phase != running
}

func (q *Queue[T]) lockedStop() {
	q.phase = stopped
	q.lockedDisarm()
	q.work.Broadcast()
	q.drained.Broadcast()
}

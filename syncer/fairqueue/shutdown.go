package fairqueue

// phase is how far the queue is on its way to its end.
type phase int8

const (
	running phase = iota
	// draining accepts nothing and hands out what is due.
	draining
	// stopped hands out nothing.
	stopped
)

// ShutDown ends the queue at once: what waits is not handed out any more, and
// workers that wait for a key return.
func (q *Queue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lockedStop()
}

// ShutDownWithDrain accepts no more keys, waits until workers have finished all
// that was due, and ends the queue. It does not wait for delayed keys nor for
// those of paused tenants. ShutDown cuts it short.
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

// ShuttingDown tells whether the queue has stopped to accept keys.
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

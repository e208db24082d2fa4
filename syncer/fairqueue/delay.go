package fairqueue

import (
	"container/heap"
	"time"
)

// backoff doubles the base with every failure, up to the maximum.
func (o Options) backoff(failures int) time.Duration {
	doublings := min(failures, 62)
	if o.BackoffBase > o.BackoffMax>>doublings {
		return o.BackoffMax
	}
	return o.BackoffBase << doublings
}

// lockedDelay makes an item due at a time, unless it is due earlier already.
func (q *Queue[T]) lockedDelay(it *item[T], at time.Time) {
	switch {
	case it.state == idle:
		it.state, it.at = delayed, at
		heap.Push(&q.delays, it)
	case it.state == delayed && at.Before(it.at):
		it.at = at
		heap.Fix(&q.delays, it.slot)
	default:
		return
	}
	q.lockedArm()
}

// lockedArm sets the timer to the first delayed item. It keeps an earlier
// setting that has become obsolete: expire sets the next.
func (q *Queue[T]) lockedArm() {
	if len(q.delays) == 0 {
		return
	}
	first := q.delays[0].at
	switch {
	case !q.armed.IsZero() && !first.Before(q.armed):
		return
	case q.timer == nil:
		q.timer = time.AfterFunc(time.Until(first), q.expire)
	default:
		q.timer.Reset(time.Until(first))
	}
	q.armed = first
}

// lockedDisarm stops the timer permanently.
func (q *Queue[T]) lockedDisarm() {
	if q.timer != nil {
		q.timer.Stop()
	}
}

// expire makes due items ready. It runs when the timer fires.
func (q *Queue[T]) expire() {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.phase != running {
		return
	}
	q.armed = time.Time{}
	for len(q.delays) > 0 && !q.delays[0].at.After(now) {
		q.lockedDue(q.delays[0], q.delays[0].at)
	}
	q.lockedArm()
}

package hosted

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turnTimeout is how long a start may delay others. A start that takes longer
// continues without its turn: it waits rather than works.
const turnTimeout = 8 * time.Second

// turns limits how many control planes start at a time. Starts that have failed
// before come after all others.
type turns struct {
	mu      sync.Mutex // guards all below
	free    int
	waiting []*turn // in the order of their turns
}

type turn struct {
	failures int
	granted  chan struct{}
}

func newTurns(number int) *turns { return &turns{free: number} }

// take waits for a turn and returns an idempotent function that ends it. The
// turn expires after a while.
func (t *turns) take(ctx context.Context, failures int) (end func(), err error) {
	mine := t.enqueue(failures)
	select {
	case <-mine.granted:
	case <-ctx.Done():
		if !t.leave(mine) {
			t.give()
		}
		return nil, context.Cause(ctx)
	}
	give := sync.OnceFunc(t.give)
	timer := time.AfterFunc(turnTimeout, give)
	return func() {
		timer.Stop()
		give()
	}, nil
}

func (t *turns) enqueue(failures int) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := &turn{failures: failures, granted: make(chan struct{})}
	at := slices.IndexFunc(t.waiting, func(other *turn) bool { return other.failures > failures })
	if at < 0 {
		at = len(t.waiting)
	}
	t.waiting = slices.Insert(t.waiting, at, mine)
	t.lockedGrant()
	return mine
}

// leave reports whether a turn was still waiting.
func (t *turns) leave(mine *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.waiting, mine)
	if at < 0 {
		return false
	}
	t.waiting = slices.Delete(t.waiting, at, at+1)
	return true
}

func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	t.lockedGrant()
}

func (t *turns) lockedGrant() {
	for t.free > 0 && len(t.waiting) > 0 {
		next := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.free--
		close(next.granted)
	}
}

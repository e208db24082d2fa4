package host

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// refusedRetry is when a store that does not take the data is checked again.
	// The control plane serves meanwhile.
	refusedRetry = 30 * time.Second
	// firstMoveRetry and lastMoveRetry bound the time before a control plane is
	// stopped again, after a move that has failed.
	firstMoveRetry = time.Minute
	lastMoveRetry  = time.Hour
	maxDoublings   = 6
)

// moves are the moves of data that this replica performs. It owns their
// goroutines.
type moves struct {
	measured *moveMetrics

	ctx  context.Context // of all moves
	work sync.WaitGroup

	mu sync.Mutex
	of map[types.NamespacedName]*move
}

// move is a move of the data of one control plane.
type move struct {
	to    string
	stage stage
	// cancel ends the work, which closes done.
	cancel context.CancelFunc
	done   chan struct{}
	// refusals counts how often the store has not taken the data, failures counts
	// transfers that have failed, and notBefore is when the next attempt may begin.
	refusals, failures int
	notBefore          time.Time
	// stoppedAt is when this replica has stopped the control plane.
	stoppedAt time.Time
}

func newMoves(ctx context.Context, measured *moveMetrics) *moves {
	return &moves{ctx: ctx, measured: measured, of: map[types.NamespacedName]*move{}}
}

// look returns how far a move to a store is, and how long to wait for the next
// attempt. A move to another store is forgotten, unless it is under way.
func (m *moves) look(key types.NamespacedName, to string) (at stage, delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.of[key]
	switch {
	case found == nil:
		return idle, 0
	case found.to != to && found.stage == preparing:
		found.cancel()
		delete(m.of, key)
		return idle, 0
	case found.to != to && found.stage != transferring && found.stage != opened:
		delete(m.of, key)
		return idle, 0
	}
	return found.stage, max(time.Until(found.notBefore), 0)
}

// has reports whether there is a move of a control plane.
func (m *moves) has(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[key] != nil
}

// begin works on a move in the background. The function work returns the next
// stage, and then is called after it, unless the move was stopped.
func (m *moves) begin(key types.NamespacedName, to string, during stage, work func(context.Context) (next stage), then func()) {
	ctx, cancel := context.WithCancel(m.ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	current := m.of[key]
	if current == nil || current.to != to {
		current = &move{to: to}
		m.of[key] = current
	}
	current.stage, current.cancel, current.done = during, cancel, make(chan struct{})
	if during == transferring && current.stoppedAt.IsZero() {
		current.stoppedAt = time.Now()
	}
	done := current.done
	m.work.Go(func() {
		defer cancel()
		next := work(ctx)
		m.mu.Lock()
		current.stage = next
		m.mu.Unlock()
		close(done)
		if ctx.Err() == nil {
			then()
		}
	})
}

// set sets the stage of a move, which nothing works on.
func (m *moves) set(key types.NamespacedName, to string, at stage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[key] == nil {
		m.of[key] = &move{to: to}
	}
	m.of[key].stage = at
}

// refuse defers a move to a store that does not take the data.
func (m *moves) refuse(key types.NamespacedName) {
	m.postpone(key, func(of *move) time.Duration {
		of.refusals++
		return refusedRetry
	})
}

// refused reports whether a move was not possible before.
func (m *moves) refused(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.of[key]
	return found != nil && found.refusals+found.failures > 0
}

// fail defers a move that has failed, longer each time.
func (m *moves) fail(key types.NamespacedName) {
	m.postpone(key, func(of *move) time.Duration {
		of.failures++
		return min(firstMoveRetry<<min(of.failures-1, maxDoublings), lastMoveRetry)
	})
}

func (m *moves) postpone(key types.NamespacedName, delay func(*move) time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.of[key]; found != nil {
		found.notBefore = time.Now().Add(delay(found))
	}
}

// measure measures how long a control plane, which serves again, was stopped. If
// another replica has stopped it, the status has the time in whole seconds.
func (m *moves) measure(key types.NamespacedName, reported time.Time, moved bool) {
	m.mu.Lock()
	since := reported
	if found := m.of[key]; found != nil && !found.stoppedAt.IsZero() {
		since = found.stoppedAt
		found.stoppedAt = time.Time{}
	}
	m.mu.Unlock()
	m.measured.serves(moved, time.Since(since))
}

// settle records that a control plane serves: a move that has failed is deferred.
func (m *moves) settle(key types.NamespacedName, moved bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.of[key]
	switch {
	case found == nil:
	case moved:
		delete(m.of, key)
	case found.stage == opened:
		found.stage = idle
	}
}

// stop ends what this replica does for a move, and waits for it.
func (m *moves) stop(ctx context.Context, key types.NamespacedName) error {
	m.mu.Lock()
	found := m.of[key]
	delete(m.of, key)
	m.mu.Unlock()
	if found == nil || found.done == nil {
		return nil
	}
	found.cancel()
	select {
	case <-found.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait returns when all moves have ended, after the end of their context.
func (m *moves) wait() { m.work.Wait() }

package webhooks

import (
	"context"
	"net/http"
	"sync"
)

// Turns are those of the requests of one tenant that are evaluated: one at a time
// computes, and the others wait, for it or for a webhook. What expressions compute
// takes as much of the CPU as the tenant wishes.
type Turns struct{ place chan struct{} }

// NewTurns returns the turns of a tenant.
func NewTurns() Turns { return Turns{place: make(chan struct{}, 1)} }

// Take waits for the turn of a request. It returns the context of its evaluation, and
// what ends the turn, which others have while a webhook is called with the context.
func (t Turns) Take(ctx context.Context) (context.Context, func(), error) {
	select {
	case t.place <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	own := &turn{ctx: ctx, place: t.place, held: true}
	return context.WithValue(ctx, turnKey{}, own), own.end, nil
}

// turnKey is the key of the turn in a context.
type turnKey struct{}

// turn is that of one request.
type turn struct {
	// ctx is that of the evaluation. Those of calls end earlier, when the tenant wishes.
	ctx   context.Context
	place chan struct{}

	mu sync.Mutex
	// calls is how many webhooks are called: several validate at the same time.
	calls       int
	held, ended bool
}

// leave lets others compute while a webhook is called.
func (t *turn) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	if t.held {
		t.held = false
		<-t.place
	}
}

// back waits for the turn after a webhook was called. It is not held if the time of the
// evaluation is over.
func (t *turn) back() {
	if !t.isLast() {
		return
	}
	select {
	case t.place <- struct{}{}:
	case <-t.ctx.Done():
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held || t.ended || t.calls > 0 {
		<-t.place
		return
	}
	t.held = true
}

// isLast counts the end of a call, and reports whether it was the last one.
func (t *turn) isLast() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls--
	return t.calls == 0
}

func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.held {
		t.held = false
		<-t.place
	}
}

// yielding calls webhooks outside of the turn of the request.
type yielding struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (y yielding) RoundTrip(r *http.Request) (*http.Response, error) {
	if own, ok := r.Context().Value(turnKey{}).(*turn); ok {
		own.leave()
		defer own.back()
	}
	return y.next.RoundTrip(r)
}

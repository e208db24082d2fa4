package queue

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
)

// ErrNotItsTurn is returned for an object that has to wait for the validation
// of another. No worker waits.
var ErrNotItsTurn = errors.New("another object of the tenant is being validated; waiting")

// Turn serializes the validation of one tenant, which is locked meanwhile. A
// request that cannot acquire it is parked and requeued when it is released, so
// that no worker waits for it.
type Turn struct {
	// call requeues a request.
	call func(Request)

	mu    sync.Mutex
	taken bool
	// waiting are the parked requests, in order.
	waiting []Request
	known   sets.Set[Request]
	// called is the last requeued request, until its reconcile has ended.
	called *Request
}

// NewTurn returns the turn of a tenant, which is free. It calls call to requeue
// a request.
func NewTurn(call func(Request)) *Turn { return &Turn{call: call, known: sets.New[Request]()} }

// Take acquires the turn if it is free, and reports whether it did.
func (t *Turn) Take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		return false
	}
	t.taken = true
	return true
}

// Give releases the turn. The next request is called when the reconcile of this
// one has ended.
func (t *Turn) Give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
}

// Wait parks a request.
func (t *Turn) Wait(r Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known.Has(r) {
		t.known.Insert(r)
		t.waiting = append(t.waiting, r)
	}
}

// Ended must be called after the reconcile of every request, whether it had the
// turn or not. It calls the next request if the turn is free. A request that
// was called may no longer need the turn.
func (t *Turn) Ended(r Request) {
	if next := t.next(r); next != nil {
		t.call(*next)
	}
}

// next returns the request to call after this one has ended; nil if there is
// none, or if one is called already.
func (t *Turn) next(ended Request) *Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.called != nil && *t.called == ended {
		t.called = nil
	}
	if t.taken || t.called != nil || len(t.waiting) == 0 {
		return nil
	}
	next := t.waiting[0]
	t.waiting = t.waiting[1:]
	t.known.Delete(next)
	t.called = &next
	return t.called
}

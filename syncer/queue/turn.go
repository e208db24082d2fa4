package queue

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
)

// ErrNotItsTurn is why an object has not been written yet. It waits for its turn, and no worker does.
var ErrNotItsTurn = errors.New("validators are asked about another object of the tenant; this one waits for its turn")

// Turn serializes the validation of one tenant, which is locked meanwhile. A request that cannot take the turn is set aside and called
// again when the turn is free, so that no worker waits for it.
type Turn struct {
	// call has a request handed out again.
	call func(Request)

	mu    sync.Mutex
	taken bool
	// waiting are the requests that found it taken, in order.
	waiting []Request
	known   sets.Set[Request]
	// called is the one that was handed out again last, until it has ended.
	called *Request
}

// NewTurn makes the turn of a tenant, which nobody has. It calls requests that are to be tried again.
func NewTurn(call func(Request)) *Turn { return &Turn{call: call, known: sets.New[Request]()} }

// Take takes the turn if it is free.
func (t *Turn) Take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		return false
	}
	t.taken = true
	return true
}

// Give gives the turn back. The next is called when the request has ended.
func (t *Turn) Give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
}

// Wait puts a request among those that wait.
func (t *Turn) Wait(r Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known.Has(r) {
		t.known.Insert(r)
		t.waiting = append(t.waiting, r)
	}
}

// Ended is told of every request that has ended, whether it had the turn or not, and calls the next if the turn is free. One that was
// called may have found nothing to write any more.
func (t *Turn) Ended(r Request) {
	if next := t.next(r); next != nil {
		t.call(*next)
	}
}

// next is the request to be called after this one has ended; nil for none, or if one is called already.
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

package engine

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
)

// errNotItsTurn is why an object has not been written yet. It waits for its turn, and no worker does.
var errNotItsTurn = errors.New("validators are asked about another object of the tenant; this one waits for its turn")

// turn has validators asked about one object of a tenant at a time, since the tenant is locked meanwhile. Who finds it taken goes away and
// is called when it is free, so that workers wait for nobody, and other tenants for no worker.
type turn struct {
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

func newTurn(call func(Request)) *turn { return &turn{call: call, known: sets.New[Request]()} }

// take takes the turn if it is free.
func (t *turn) take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		return false
	}
	t.taken = true
	return true
}

// give gives the turn back. The next is called when the request has ended.
func (t *turn) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
}

// wait puts a request among those that wait.
func (t *turn) wait(r Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known.Has(r) {
		t.known.Insert(r)
		t.waiting = append(t.waiting, r)
	}
}

// ended is told of every request that has ended, whether it had the turn or not, and calls the next if the turn is free. One that was
// called may have found nothing to write any more.
func (t *turn) ended(r Request) {
	if next := t.next(r); next != nil {
		t.call(*next)
	}
}

// next is the request to be called after this one has ended; nil for none, or if one is called already.
func (t *turn) next(ended Request) *Request {
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

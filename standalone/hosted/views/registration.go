package views

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// registration calls a handler, in a goroutine that exists only while there are
// changes.
type registration struct {
	view    *view
	handler cache.ResourceEventHandler
	synced  chan struct{}

	// started and begun are protected by the lock of the view.
	started bool
	begun   bool

	mu      sync.Mutex
	queue   []*notification
	pending map[string]*notification // by name
	// initial is the number of initial objects that are not delivered yet.
	initial int
	running bool
	stopped bool
}

// notification is what a handler has to be called for: the object that it
// knows, and the one that exists; nil stands for none.
type notification struct {
	name       string
	known, now metav1.Object
	// last is the state in which the object was deleted.
	last    metav1.Object
	initial bool
}

func newRegistration(v *view, handler cache.ResourceEventHandler, started bool) *registration {
	return &registration{view: v, handler: handler, synced: make(chan struct{}), started: started, pending: map[string]*notification{}}
}

// begin queues the objects that exist. It is called under the lock of the view,
// as is notify.
func (r *registration) begin(objects []any) {
	r.begun = true
	r.mu.Lock()
	defer r.mu.Unlock()
	r.initial = len(objects)
	if r.initial == 0 {
		close(r.synced)
		return
	}
	for _, object := range objects {
		o := object.(metav1.Object)
		r.enqueue(&notification{name: cache.MetaObjectToName(o).String(), now: o, initial: true})
	}
}

// notify queues a change. A change of an object that is queued already is added
// to it.
func (r *registration) notify(name string, known, now, last metav1.Object) {
	if !r.begun {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if queued := r.pending[name]; queued != nil {
		queued.now = now
		if last != nil {
			queued.last = last
		}
		return
	}
	r.enqueue(&notification{name: name, known: known, now: now, last: last})
}

func (r *registration) enqueue(n *notification) {
	if r.stopped {
		return
	}
	r.queue = append(r.queue, n)
	r.pending[n.name] = n
	if !r.running {
		r.running = r.view.owner.spawn(r.run)
	}
}

func (r *registration) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped, r.queue = true, nil
	clear(r.pending)
}

func (r *registration) run() {
	for n := r.next(); n != nil; n = r.next() {
		r.deliver(n)
		r.delivered(n)
	}
}

func (r *registration) next() *notification {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		r.queue, r.running = nil, false
		if r.initial == 0 {
			r.pending = map[string]*notification{} // a map never shrinks
		}
		return nil
	}
	n := r.queue[0]
	r.queue[0] = nil
	r.queue = r.queue[1:]
	delete(r.pending, n.name)
	return n
}

func (r *registration) delivered(n *notification) {
	if !n.initial {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.initial--; r.initial == 0 {
		close(r.synced)
	}
}

// deliver calls the handler. Upstream's informers, too, skip a notification
// whose handler panics.
func (r *registration) deliver(n *notification) {
	defer Recovered(func(err error) {
		r.view.owner.fail(fmt.Errorf("handle a change of %s %s: %w", r.view.kind.name, n.name, err))
	})
	replaced := n.known != nil && n.now != nil && n.known.GetUID() != n.now.GetUID()
	if n.known != nil && (n.now == nil || replaced) {
		last := n.last
		if last == nil {
			last = n.known
		}
		r.handler.OnDelete(last)
	}
	switch {
	case n.now == nil:
	case n.known == nil || replaced:
		r.handler.OnAdd(n.now, n.initial)
	default:
		r.handler.OnUpdate(n.known, n.now)
	}
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSynced() bool { return cache.IsDone(r) }

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSyncedChecker() cache.DoneChecker { return r }

// Name implements cache.DoneChecker.
func (r *registration) Name() string { return "a handler of " + r.view.kind.name }

// Done implements cache.DoneChecker.
func (r *registration) Done() <-chan struct{} { return r.synced }

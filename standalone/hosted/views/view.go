package views

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// view has the objects of one resource in one version. Informers of several
// factories share it.
type view struct {
	owner *Views
	kind  kind
	// users are the factories that use it, counted by its owner.
	users int

	// current has the objects, once they are listed.
	current atomic.Pointer[contents]
	// used reports whether objects were read since the last trim.
	used atomic.Bool
	// unreadable reports whether the last list failed.
	unreadable atomic.Bool

	mu        sync.Mutex
	indexers  cache.Indexers
	transform cache.TransformFunc
	// contents is what changes go to; nil before the first list and after trim.
	contents *contents
	// registrations are those of all informers. They begin to receive changes
	// once their informer is started and the objects are listed.
	registrations []*registration
	listed        chan struct{}
	closed        bool
}

func newView(owner *Views, kind kind, indexers cache.Indexers) *view {
	return &view{owner: owner, kind: kind, indexers: indexers, listed: make(chan struct{})}
}

// read returns the objects, and lists them if necessary. An error means that
// the views are closed, or that etcd cannot be read.
func (v *view) read() (cache.Indexer, error) {
	if !v.used.Load() {
		v.used.Store(true)
	}
	if current := v.current.Load(); current != nil {
		return current.store, nil
	}
	store, err := v.list()
	v.unreadable.Store(err != nil)
	return store, err
}

// list brings the objects up to date.
func (v *view) list() (cache.Indexer, error) {
	for {
		c, err := v.open()
		if err != nil {
			return nil, err
		}
		err = c.subscription.Receive(v.owner.ctx, c)
		switch {
		case err == nil && c.complete.Load():
			return c.store, nil
		case err != nil && !errors.Is(err, feed.ErrClosed):
			return nil, err
		}
		// Trim or close came before the list was complete.
	}
}

// open returns the contents that changes go to.
func (v *view) open() (*contents, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, errClosed
	}
	if v.kind.err != nil {
		return nil, v.kind.err
	}
	if v.contents == nil {
		subscription, err := v.owner.feed.Subscribe(v.owner.tenant, v.kind.resource, func() { v.owner.worker.schedule(v) })
		if err != nil {
			return nil, err
		}
		v.contents = &contents{
			view: v, transform: v.transform, subscription: subscription,
			store: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, v.indexers),
		}
	}
	return v.contents, nil
}

// refresh is called by the worker.
func (v *view) refresh() {
	if v.unused() {
		return
	}
	if _, err := v.list(); err != nil && !errors.Is(err, errClosed) && !errors.Is(err, feed.ErrEnded) && v.owner.ctx.Err() == nil {
		v.owner.fail(err)
	}
}

// register adds a registration, which begins later.
func (v *view) register(r *registration) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return fmt.Errorf("add a handler of %s: %w", v.kind.name, errClosed)
	}
	v.registrations = append(v.registrations, r)
	v.begin()
	return nil
}

// unregister removes a registration. A call of its handler may be in progress.
func (v *view) unregister(r *registration) {
	v.mu.Lock()
	v.registrations = slices.DeleteFunc(slices.Clone(v.registrations), func(other *registration) bool { return other == r })
	v.mu.Unlock()
	r.stop()
}

// begin lets registrations receive changes that are ready to. It is called
// under the lock.
func (v *view) begin() {
	if v.closed {
		return
	}
	waiting := slices.ContainsFunc(v.registrations, func(r *registration) bool { return r.started && !r.begun })
	if !waiting {
		return
	}
	current := v.current.Load()
	if current == nil {
		v.owner.worker.schedule(v)
		return
	}
	for _, r := range v.registrations {
		if r.started && !r.begun {
			r.begin(current.store.List())
		}
	}
}

// lazy reports whether the objects need not be listed before a read. Handlers
// need them.
func (v *view) lazy() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.registrations) == 0 && !v.closed && v.kind.err == nil && !v.unreadable.Load()
}

// unused reports whether the objects are needed by neither reads nor handlers.
func (v *view) unused() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.contents == nil && len(v.registrations) == 0
}

// whenListed returns a channel that is closed once the objects are listed.
func (v *view) whenListed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.listed
}

func (v *view) isClosed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.closed
}

func (v *view) addIndexers(indexers cache.Indexers) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name := range indexers {
		if _, exists := v.indexers[name]; exists {
			return fmt.Errorf("add an index of %s: %q exists", v.kind.name, name)
		}
	}
	if v.contents != nil {
		if err := v.contents.store.AddIndexers(indexers); err != nil {
			return err
		}
	}
	all := maps.Clone(indexers)
	maps.Copy(all, v.indexers)
	v.indexers = all
	return nil
}

func (v *view) setTransform(transform cache.TransformFunc) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.contents != nil || v.closed {
		return fmt.Errorf("set the transform of %s: the objects are listed already", v.kind.name)
	}
	v.transform = transform
	return nil
}

// trim frees the objects if nothing uses them.
func (v *view) trim() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.used.Swap(false) || len(v.registrations) > 0 || v.contents == nil || v.closed {
		return
	}
	v.contents.subscription.Close()
	v.contents = nil
	v.current.Store(nil)
	v.listed = make(chan struct{})
}

// close ends the view. Listers that are still in use keep its last objects: if
// they returned none, a controller could believe them deleted.
func (v *view) close() {
	v.mu.Lock()
	v.closed = true
	registrations := v.registrations
	v.registrations = nil
	if v.contents != nil {
		v.contents.subscription.Close()
	}
	v.mu.Unlock()
	for _, r := range registrations {
		r.stop()
	}
}

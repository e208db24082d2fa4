package views

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// informer is the use of a view by one factory.
type informer struct {
	view *view

	mu            sync.Mutex
	started       bool
	registrations []*registration
}

var _ cache.SharedIndexInformer = (*informer)(nil)

// start lets the handlers receive changes. Constructors may add handlers before
// these can be called.
func (i *informer) start() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.started = true
	i.view.mu.Lock()
	defer i.view.mu.Unlock()
	for _, r := range i.registrations {
		r.started = true
	}
	i.view.begin()
}

// close removes the handlers.
func (i *informer) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.registrations {
		i.view.unregister(r)
	}
	i.registrations = nil
}

// AddEventHandler implements cache.SharedInformer.
func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := newRegistration(i.view, handler, i.started)
	if err := i.view.register(r); err != nil {
		return nil, err
	}
	i.registrations = append(i.registrations, r)
	return r, nil
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer, without
// resyncs.
func (i *informer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandlerWithOptions implements cache.SharedInformer, without resyncs.
func (i *informer) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler implements cache.SharedInformer.
func (i *informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return errors.New("remove a handler: its registration is not one of this informer")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.registrations = slices.DeleteFunc(i.registrations, func(other *registration) bool { return other == r })
	i.view.unregister(r)
	return nil
}

// GetStore implements cache.SharedInformer.
func (i *informer) GetStore() cache.Store { return indexer{i.view} }

// GetIndexer implements cache.SharedIndexInformer.
func (i *informer) GetIndexer() cache.Indexer { return indexer{i.view} }

// AddIndexers implements cache.SharedIndexInformer.
func (i *informer) AddIndexers(indexers cache.Indexers) error { return i.view.addIndexers(indexers) }

// GetController implements cache.SharedInformer.
func (i *informer) GetController() cache.Controller { return controller{i} }

// Run implements cache.SharedInformer. Handlers need it or the factory's Start.
func (i *informer) Run(stop <-chan struct{}) {
	i.start()
	<-stop
}

// RunWithContext implements cache.SharedInformer.
func (i *informer) RunWithContext(ctx context.Context) { i.Run(ctx.Done()) }

// HasSynced implements cache.SharedInformer. An informer without handlers has
// always synced, because a read lists the objects.
func (i *informer) HasSynced() bool { return cache.IsDone(i.HasSyncedChecker()) }

// HasSyncedChecker implements cache.SharedInformer.
func (i *informer) HasSyncedChecker() cache.DoneChecker {
	if i.view.lazy() {
		return checker{i.view, always()}
	}
	return checker{i.view, i.view.whenListed()}
}

// LastSyncResourceVersion implements cache.SharedInformer.
func (i *informer) LastSyncResourceVersion() string {
	return indexer{i.view}.LastStoreSyncResourceVersion()
}

// SetWatchErrorHandler implements cache.SharedInformer. There are no errors:
// the feed recovers by itself.
func (*informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return nil }

// SetWatchErrorHandlerWithContext implements cache.SharedInformer.
func (*informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}

// SetTransform implements cache.SharedInformer. The transform comes after
// [Economize]. It must be set before the objects are listed.
func (i *informer) SetTransform(transform cache.TransformFunc) error {
	return i.view.setTransform(transform)
}

// IsStopped implements cache.SharedInformer.
func (i *informer) IsStopped() bool { return i.view.isClosed() }

// checker reports when the objects of a view are listed.
type checker struct {
	view *view
	done <-chan struct{}
}

// Name implements cache.DoneChecker.
func (c checker) Name() string { return "a view of " + c.view.kind.name }

// Done implements cache.DoneChecker.
func (c checker) Done() <-chan struct{} { return c.done }

// always returns a channel that is closed.
func always() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// controller implements cache.Controller for an informer, as upstream's
// informers do: running it does nothing.
type controller struct{ *informer }

// Run implements cache.Controller.
func (controller) Run(<-chan struct{}) {}

// RunWithContext implements cache.Controller.
func (controller) RunWithContext(context.Context) {}

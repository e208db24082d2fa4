package informer

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
)

// registration is a handler of an informer. It is called synchronously, so it
// is always as far as its informer.
type registration struct {
	syncing

	handler cache.ResourceEventHandler
}

// AddEventHandler calls the handler for every known object, and adds it for
// later events.
func (i *Informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, errStopped
	}
	joined := &registration{syncing{i}, handler}
	i.handlers = append(i.handlers, joined)
	for _, obj := range i.indexer.List() {
		handler.OnAdd(obj, true)
	}
	return joined, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: there is no resync.
func (i *Informer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandlerWithOptions is AddEventHandler: there is no resync, and the
// logger is not used.
func (i *Informer) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler removes a handler, which is not called any more once it
// returns. A removed handler may be removed again.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	joined, ok := handle.(*registration)
	if !ok || joined.informer != i {
		return fmt.Errorf("%T is not a registration of this informer", handle)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = slices.DeleteFunc(i.handlers, func(r *registration) bool { return r == joined })
	return nil
}

// lockedAdded notifies the handlers of a new object.
func (i *Informer) lockedAdded(obj any, initial bool) {
	i.mutations.AddObject(obj)
	for _, r := range i.handlers {
		r.handler.OnAdd(obj, initial)
	}
}

// lockedUpdated notifies the handlers of a state of an object, which may be the
// same one if it was listed again.
func (i *Informer) lockedUpdated(was, obj any) {
	i.mutations.AddObject(obj)
	for _, r := range i.handlers {
		r.handler.OnUpdate(was, obj)
	}
}

// lockedDeleted notifies the handlers of a deletion.
func (i *Informer) lockedDeleted(obj any) {
	for _, r := range i.handlers {
		r.handler.OnDelete(obj)
	}
}

// syncing reports whether an informer has read a complete list and notified its
// handlers.
type syncing struct{ informer *Informer }

// HasSynced reports whether it has synced.
func (s syncing) HasSynced() bool { return cache.IsDone(s) }

// HasSyncedChecker returns a checker that is done when it has synced.
func (s syncing) HasSyncedChecker() cache.DoneChecker { return s }

// Name describes the informer.
func (s syncing) Name() string { return fmt.Sprintf("informer of %T", s.informer.example) }

// Done is closed when it has synced.
func (s syncing) Done() <-chan struct{} { return s.informer.synced }

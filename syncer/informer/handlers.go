package informer

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
)

// registration is a handler that has joined an informer. All that it is told, it is told inline: it is as far as its informer.
type registration struct {
	syncing

	handler cache.ResourceEventHandler
}

// AddEventHandler has a handler told of every object that is known, and of what happens from then on.
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

// AddEventHandlerWithOptions is AddEventHandler: there is no resync, and nothing to log.
func (i *Informer) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler has a handler told nothing any more once it returns. One that has been removed may be removed again.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	joined, ok := handle.(*registration)
	if !ok || joined.informer != i {
		return fmt.Errorf("this %T is not of a handler of this informer", handle)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = slices.DeleteFunc(i.handlers, func(r *registration) bool { return r == joined })
	return nil
}

// lockedAdded tells the handlers of an object.
func (i *Informer) lockedAdded(obj any, initial bool) {
	i.mutations.AddObject(obj)
	for _, r := range i.handlers {
		r.handler.OnAdd(obj, initial)
	}
}

// lockedUpdated tells the handlers of a state of an object; of the same one too, if it was listed again.
func (i *Informer) lockedUpdated(was, obj any) {
	i.mutations.AddObject(obj)
	for _, r := range i.handlers {
		r.handler.OnUpdate(was, obj)
	}
}

// lockedDeleted tells the handlers that an object is gone.
func (i *Informer) lockedDeleted(obj any) {
	for _, r := range i.handlers {
		r.handler.OnDelete(obj)
	}
}

// syncing is whether an informer holds a whole list and has told it to its handlers.
type syncing struct{ informer *Informer }

// HasSynced says whether it does.
func (s syncing) HasSynced() bool { return cache.IsDone(s) }

// HasSyncedChecker is done when it does.
func (s syncing) HasSyncedChecker() cache.DoneChecker { return s }

// Name says of what.
func (s syncing) Name() string { return fmt.Sprintf("informer of %T", s.informer.example) }

// Done is closed when it does.
func (s syncing) Done() <-chan struct{} { return s.informer.synced }

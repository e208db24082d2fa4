package converted

import (
	"errors"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// both are the informers of a kind in both caches.
type both [2]cache.Informer

// AddEventHandler implements cache.Informer.
func (b both) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return b.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (b both) AddEventHandlerWithResyncPeriod(
	h toolscache.ResourceEventHandler, period time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return b.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements cache.Informer.
func (b both) AddEventHandlerWithOptions(
	h toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	var added registrations
	turns := &oneByOne{next: h}
	for i, informer := range b {
		var err error
		if added[i], err = informer.AddEventHandlerWithOptions(turns, options); err != nil {
			return nil, err
		}
	}
	return added, nil
}

// RemoveEventHandler implements cache.Informer.
func (b both) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	added, ok := handle.(registrations)
	if !ok {
		return errors.New("remove event handler: it was not added to this informer")
	}
	return errors.Join(b[0].RemoveEventHandler(added[0]), b[1].RemoveEventHandler(added[1]))
}

// AddIndexers implements cache.Informer.
func (b both) AddIndexers(indexers toolscache.Indexers) error {
	return errors.Join(b[0].AddIndexers(indexers), b[1].AddIndexers(indexers))
}

// HasSynced implements cache.Informer.
func (b both) HasSynced() bool { return b[0].HasSynced() && b[1].HasSynced() }

// HasSyncedChecker implements cache.Informer.
func (b both) HasSyncedChecker() toolscache.DoneChecker {
	return checkers{b[0].HasSyncedChecker(), b[1].HasSyncedChecker()}
}

// IsStopped implements cache.Informer.
func (b both) IsStopped() bool { return b[0].IsStopped() || b[1].IsStopped() }

// registrations are those of one handler.
type registrations [2]toolscache.ResourceEventHandlerRegistration

// HasSynced implements toolscache.ResourceEventHandlerRegistration.
func (r registrations) HasSynced() bool { return r[0].HasSynced() && r[1].HasSynced() }

// HasSyncedChecker implements toolscache.ResourceEventHandlerRegistration.
func (r registrations) HasSyncedChecker() toolscache.DoneChecker {
	return checkers{r[0].HasSyncedChecker(), r[1].HasSyncedChecker()}
}

// checkers are done when both are.
type checkers [2]toolscache.DoneChecker

// Name implements toolscache.DoneChecker.
func (c checkers) Name() string { return c[0].Name() }

// Done implements toolscache.DoneChecker.
func (c checkers) Done() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		<-c[0].Done()
		<-c[1].Done()
		close(done)
	}()
	return done
}

// oneByOne delivers the events of two informers to a handler, one at a time.
type oneByOne struct {
	mu   sync.Mutex
	next toolscache.ResourceEventHandler
}

// OnAdd implements toolscache.ResourceEventHandler.
func (o *oneByOne) OnAdd(obj any, isInInitialList bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next.OnAdd(obj, isInInitialList)
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (o *oneByOne) OnUpdate(was, now any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next.OnUpdate(was, now)
}

// OnDelete implements toolscache.ResourceEventHandler.
func (o *oneByOne) OnDelete(obj any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next.OnDelete(obj)
}

// Package informer watches objects and keeps them in memory, with as few goroutines and buffers as that takes: a syncer has
// an informer for each kind of each tenant, and nearly all of them have nothing to tell.
package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Informer does what client-go's shared informers do, with client-go's reflector and index, but has neither a queue between the
// reflector and the index nor one for each handler: handlers are called one after the other by the goroutine that reads the
// watch. So a handler must return at once, and must not add or remove handlers. There is no resync.
type Informer struct {
	source  cache.ListerWatcher
	example runtime.Object
	indexer index
	// transform changes every object before it is kept; what it made it leaves as it is.
	transform cache.TransformFunc
	// mutations panics when a kept object is changed, in tests that ask for that.
	mutations cache.MutationDetector

	// group is set for an informer that lives as long as its group, not as the context that it runs with. check returns why an
	// object is dropped; it is nil without a group.
	group *Group
	check func(obj any) string
	// account is what the objects take of the group's budget.
	account account

	started   atomic.Bool
	reflector atomic.Pointer[cache.Reflector]
	// synced is closed when the first list is in the index and has been told to the handlers.
	synced chan struct{}

	// mu lets handlers come and go between events, not during one.
	mu       sync.Mutex
	stopped  bool
	handlers []*registration
}

var _ cache.SharedIndexInformer = (*Informer)(nil)

// errStopped says why nothing can be added.
var errStopped = errors.New("the informer has stopped")

// errStarted says why something cannot be changed.
var errStarted = errors.New("the informer has started")

// New makes an informer. It fits controller-runtime's cache; the period of resyncs is without meaning.
func New(source cache.ListerWatcher, example runtime.Object, _ time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return newInformer(source, example, indexers)
}

func newInformer(source cache.ListerWatcher, example runtime.Object, indexers cache.Indexers) *Informer {
	mutations := cache.NewCacheMutationDetector(fmt.Sprintf("%T", example))
	return &Informer{
		source:    source,
		example:   example,
		indexer:   newIndex(indexers, mutations.AddObject),
		mutations: mutations,
		synced:    make(chan struct{}),
	}
}

// Run watches until stop is closed.
func (i *Informer) Run(stop <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext watches until ctx ends. One of a group returns at once, and watches until the group's context ends. An informer
// runs once.
func (i *Informer) RunWithContext(ctx context.Context) {
	if !i.started.CompareAndSwap(false, true) {
		klog.FromContext(ctx).Error(errStarted, "An informer can run once", "type", fmt.Sprintf("%T", i.example))
		return
	}
	logger := klog.FromContext(ctx)
	if i.group != nil {
		logger = logger.WithSink(quiet{logger.GetSink(), func() { i.reject(ReasonEvent) }})
		i.group.running.Go(func() { i.watch(klog.NewContext(i.group.ctx, logger)) })
		return
	}
	// A context that is not of the standard library's making takes a goroutine for each that is derived from it; so does this one,
	// but not what the reflector derives from it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.watch(ctx)
}

// watch watches until ctx ends.
func (i *Informer) watch(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { i.mutations.Run(ctx.Done()) }) // which ends at once, but in those tests
	defer i.stop()
	logger := klog.FromContext(ctx)
	reflector := cache.NewReflectorWithOptions(i.source, i.example, &store{i}, cache.ReflectorOptions{Logger: &logger, Name: "informer"})
	i.reflector.Store(reflector)
	reflector.RunWithContext(ctx)
}

// reject reports that an object is dropped.
func (i *Informer) reject(reason string) {
	if i.group != nil {
		i.group.opts.Rejected(kindOf(i.example), reason)
	}
}

// isDropped reports whether an object is dropped, and rejects it if so.
func (i *Informer) isDropped(obj any) bool {
	switch obj.(type) {
	case dropped:
		return true
	case *packed: // has passed
		return false
	}
	if i.check == nil {
		return false
	}
	reason := i.check(obj)
	if reason != "" {
		i.reject(reason)
	}
	return reason != ""
}

// stop rejects all later handlers.
func (i *Informer) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
}

// IsStopped says whether it has run and will not again.
func (i *Informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

// HasSynced says whether the index holds a whole list.
func (i *Informer) HasSynced() bool { return cache.IsDone(i.HasSyncedChecker()) }

// HasSyncedChecker is done when the index holds a whole list.
func (i *Informer) HasSyncedChecker() cache.DoneChecker { return syncing{i} }

// LastSyncResourceVersion is how far the watch has come.
func (i *Informer) LastSyncResourceVersion() string {
	if reflector := i.reflector.Load(); reflector != nil {
		return reflector.LastSyncResourceVersion()
	}
	return ""
}

// GetIndexer returns the index of the objects.
func (i *Informer) GetIndexer() cache.Indexer { return i.indexer }

// GetStore returns the index of the objects.
func (i *Informer) GetStore() cache.Store { return i.indexer }

// AddIndexers adds indexes.
func (i *Informer) AddIndexers(indexers cache.Indexers) error {
	if i.IsStopped() {
		return errStopped
	}
	return i.indexer.AddIndexers(indexers)
}

// SetTransform sets what changes every object before it is kept. It is called more than once for some.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	if i.started.Load() {
		return errStarted
	}
	i.transform = transform
	return nil
}

// SetWatchErrorHandler fails: client-go's own handler, which logs, cannot be replaced.
func (*Informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return errors.ErrUnsupported }

// SetWatchErrorHandlerWithContext fails: client-go's own handler, which logs, cannot be replaced.
func (*Informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return errors.ErrUnsupported
}

// GetController returns nothing: there is none.
func (*Informer) GetController() cache.Controller { return nil }

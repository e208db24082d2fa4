// Package informer provides informers with as few goroutines and buffers as
// possible: a syncer has an informer for each kind of each tenant, and nearly
// all of them are idle.
package informer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Informer is a replacement for client-go's shared informers, with client-go's
// reflector and index. It has neither a queue between the reflector and the
// index nor one for each handler: the goroutine that reads the watch calls the
// handlers in sequence. So a handler must return at once, and must not add or
// remove handlers. There is no resync.
type Informer struct {
	source  cache.ListerWatcher
	example runtime.Object
	indexer index
	// transform changes every object before it is stored. It must be
	// idempotent.
	transform cache.TransformFunc
	// mutations panics when a stored object is changed, in tests that enable
	// it.
	mutations cache.MutationDetector

	// group is set for an informer that lives as long as its group, and not as
	// the context of Run. check returns the reason to drop an object; it is nil
	// without a group.
	group *Group
	check func(obj any) string
	// account is the memory of the objects within the group's budget.
	account account

	started   atomic.Bool
	reflector atomic.Pointer[cache.Reflector]
	// revision is the one up to which a stream was read; 0 without a stream.
	revision atomic.Int64
	// synced is closed when the first list is in the index and the handlers
	// have been notified of it.
	synced chan struct{}

	// mu serializes events with changes of the handlers.
	mu       sync.Mutex
	stopped  bool
	handlers []*registration
}

var _ cache.SharedIndexInformer = (*Informer)(nil)

// errStopped is returned by methods that require an informer to run.
var errStopped = errors.New("the informer has stopped")

// errStarted is returned by methods that require an informer not to run.
var errStarted = errors.New("the informer has started")

// New returns an informer. The signature is that of controller-runtime's cache;
// the resync period is ignored.
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

// RunWithContext watches until ctx is done. An informer of a group returns at
// once, and watches until the group's context is done. An informer can run
// once.
func (i *Informer) RunWithContext(ctx context.Context) {
	if !i.started.CompareAndSwap(false, true) {
		klog.FromContext(ctx).Error(errStarted, "An informer can run once", "type", fmt.Sprintf("%T", i.example))
		return
	}
	logger := klog.FromContext(ctx)
	if i.group != nil {
		logger = logger.WithSink(quiet{logger.GetSink(), func() { i.reject(ReasonEvent) }})
		if i.group.stream == nil || !i.group.stream.join(i, logger) {
			i.group.running.Go(func() { i.watch(klog.NewContext(i.group.ctx, logger)) })
		}
		return
	}
	// A context that is not of a standard library type needs a goroutine for
	// each context derived from it. Only this one is derived from it; the
	// reflector derives others from this.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.watch(ctx)
}

// watch watches until ctx is done.
func (i *Informer) watch(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { i.mutations.Run(ctx.Done()) }) // returns at once unless mutations are detected
	i.reflect(ctx)
}

// reflect watches until ctx is done, with client-go's reflector.
func (i *Informer) reflect(ctx context.Context) {
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
	case *packed: // checked already
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

// stop makes the informer reject new handlers.
func (i *Informer) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
}

// IsStopped reports whether the informer has stopped. It cannot run again.
func (i *Informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

// HasSynced reports whether the index holds a complete list.
func (i *Informer) HasSynced() bool { return cache.IsDone(i.HasSyncedChecker()) }

// HasSyncedChecker returns a checker that is done when the index holds a
// complete list.
func (i *Informer) HasSyncedChecker() cache.DoneChecker { return syncing{i} }

// LastSyncResourceVersion returns the resource version up to which the watch
// has read.
func (i *Informer) LastSyncResourceVersion() string {
	if reflector := i.reflector.Load(); reflector != nil {
		return reflector.LastSyncResourceVersion()
	}
	if revision := i.revision.Load(); revision > 0 {
		return strconv.FormatInt(revision, 10)
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

// SetTransform sets a function that changes every object before it is stored.
// It may be called repeatedly for an object.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	if i.started.Load() {
		return errStarted
	}
	i.transform = transform
	return nil
}

// SetWatchErrorHandler fails: client-go's own handler, which logs, cannot be
// replaced.
func (*Informer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return errors.ErrUnsupported }

// SetWatchErrorHandlerWithContext fails: client-go's own handler, which logs,
// cannot be replaced.
func (*Informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return errors.ErrUnsupported
}

// GetController returns nil: there is no controller.
func (*Informer) GetController() cache.Controller { return nil }

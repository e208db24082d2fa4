package views

import (
	"context"
	"maps"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Factory has the informers that one part of a tenant uses, such as a
// controller. The factories of a tenant share views, so that objects are cached
// once; a view ends with the last factory that uses it.
//
// Informers have all objects of a tenant: the namespaces and selectors of
// informers that a caller constructs itself have no effect.
type Factory struct {
	views *Views

	mu        sync.Mutex
	informers map[viewKey]*informer
	types     map[reflect.Type]viewKey
	closed    bool
}

var _ informers.SharedInformerFactory = (*Factory)(nil)

// NewFactory returns a factory of informers of the tenant.
func (v *Views) NewFactory() *Factory {
	return &Factory{views: v, informers: map[viewKey]*informer{}, types: map[reflect.Type]viewKey{}}
}

// InformerFor implements informers.SharedInformerFactory. The function provides
// no more than the indexers.
func (f *Factory) InformerFor(example runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	goType := reflect.TypeOf(example)
	if key, known := f.types[goType]; known {
		return f.informers[key]
	}
	typed, resource := typedKind(example)
	if typed.err != nil {
		f.views.fail(typed.err)
	}
	key := viewKey{resource: resource}
	f.types[goType] = key
	return f.informer(key, func() *view { return newView(f.views, typed, newFunc(nil, 0).GetIndexer().GetIndexers()) })
}

// informer is called under the lock.
func (f *Factory) informer(key viewKey, create func() *view) *informer {
	if found := f.informers[key]; found != nil {
		return found
	}
	created := &informer{view: f.views.acquire(key, create)}
	f.informers[key] = created
	if f.closed { // as unusable as the others
		f.views.release(key)
	}
	return created
}

// ForResource implements informers.SharedInformerFactory.
func (f *Factory) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	// The stock factory knows the informer, and its indexers, of each resource.
	stock, err := informers.NewSharedInformerFactory(nil, 0).ForResource(resource)
	if err != nil {
		return nil, err
	}
	example, err := exampleOf(resource)
	if err != nil {
		return nil, err
	}
	found := f.InformerFor(example, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return stock.Informer() })
	return generic{found, resource.GroupResource()}, nil
}

// Start implements informers.SharedInformerFactory: the handlers that were
// added so far receive changes from now on, and so do those that will be added
// to these informers. Views end with Close, not with the channel.
func (f *Factory) Start(<-chan struct{}) {
	for _, each := range f.all() {
		each.start()
	}
}

// StartWithContext implements informers.SharedInformerFactory.
func (f *Factory) StartWithContext(ctx context.Context) { f.Start(ctx.Done()) }

// Shutdown implements informers.SharedInformerFactory.
func (f *Factory) Shutdown() { f.Close() }

// Close ends the use of the views by this factory. It does not wait for a
// handler that is running, and must come after the part that uses the factory
// has ended.
func (f *Factory) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	for key, each := range f.informers {
		each.close()
		f.views.release(key)
	}
}

func (f *Factory) all() map[viewKey]*informer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.informers)
}

// WaitForCacheSync implements informers.SharedInformerFactory.
func (f *Factory) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	return f.WaitForCacheSyncWithContext(wait.ContextForChannel(stop)).Synced
}

// WaitForCacheSyncWithContext implements informers.SharedInformerFactory.
func (f *Factory) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	result := cache.SyncResult{Synced: map[reflect.Type]bool{}}
	synced := f.waitFor(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	for goType, key := range f.types {
		result.Synced[goType] = synced[key]
		if !synced[key] {
			result.Err = context.Cause(ctx)
		}
	}
	return result
}

func (f *Factory) waitFor(ctx context.Context) map[viewKey]bool {
	all := f.all()
	checkers := make([]cache.DoneChecker, 0, len(all))
	for _, each := range all {
		checkers = append(checkers, each.HasSyncedChecker())
	}
	cache.WaitFor(ctx, "", checkers...)
	synced := make(map[viewKey]bool, len(all))
	for key, each := range all {
		synced[key] = each.HasSynced()
	}
	return synced
}

// InformerName implements informers.SharedInformerFactory.
func (*Factory) InformerName() *cache.InformerName { return nil }

// generic implements informers.GenericInformer.
type generic struct {
	informer cache.SharedIndexInformer
	resource schema.GroupResource
}

// Informer implements informers.GenericInformer.
func (g generic) Informer() cache.SharedIndexInformer { return g.informer }

// Lister implements informers.GenericInformer.
func (g generic) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.informer.GetIndexer(), g.resource)
}

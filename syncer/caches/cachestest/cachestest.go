// Package cachestest provides caches with fixed content for tests.
package cachestest

import (
	"context"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Informer is an informer whose index does not change by itself.
type Informer struct {
	cache.Informer
	// Index holds the objects.
	Index toolscache.Indexer
	// Synced is closed by the test when the index is complete.
	Synced chan struct{}
	// Handlers counts the added event handlers, which are never called.
	Handlers int
}

var _ toolscache.DoneChecker = &Informer{}

// GetIndexer returns the index.
func (f *Informer) GetIndexer() toolscache.Indexer { return f.Index }

// AddIndexers adds indexers to the index.
func (f *Informer) AddIndexers(more toolscache.Indexers) error { return f.Index.AddIndexers(more) }

// HasSyncedChecker returns the informer itself.
func (f *Informer) HasSyncedChecker() toolscache.DoneChecker { return f }

// Name implements toolscache.DoneChecker.
func (f *Informer) Name() string { return "full" }

// Done returns Synced.
func (f *Informer) Done() <-chan struct{} { return f.Synced }

// AddEventHandler counts a handler.
func (f *Informer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	f.Handlers++
	return f, nil
}

// HasSynced reports whether Synced is closed.
func (f *Informer) HasSynced() bool { return toolscache.IsDone(f) }

// NewInformer returns an informer with an empty index, which has not synced.
func NewInformer() *Informer {
	return &Informer{
		Index: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
			toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
		}),
		Synced: make(chan struct{}),
	}
}

// fixed is a cache whose informers do not change by themselves.
type fixed struct {
	cache.Cache
	informers map[schema.GroupVersionKind]*Informer
}

func (c *fixed) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, clientgoscheme.Scheme)
	if err != nil {
		return nil, err
	}
	if c.informers[gvk] == nil {
		c.informers[gvk] = NewInformer()
		close(c.informers[gvk].Synced)
	}
	return c.informers[gvk], nil
}

// NewReader returns a reader of a cache with the objects of [Hold].
func NewReader() *caches.Reader {
	return caches.NewReader(&fixed{informers: map[schema.GroupVersionKind]*Informer{}})
}

// Hold adds the objects that are of kind k to the cache.
func Hold(r *caches.Reader, k *kinds.Kind, objects ...client.Object) {
	indexes := caches.TenantIndexes(k)
	maps.Copy(indexes, caches.SuperIndexes(k))
	informer, err := r.Open(context.Background(), k, indexes)
	for _, obj := range objects {
		if err == nil && reflect.TypeOf(obj) == reflect.TypeOf(k.Object) {
			err = informer.GetIndexer().Add(obj)
		}
	}
	utilruntime.Must(err)
}

// Cache is a cache that returns the same informer for every kind.
type Cache struct {
	cache.Cache
	// Informer and Err are returned by GetInformer.
	Informer cache.Informer
	Err      error
	// Opened and Removed count the calls.
	Opened, Removed int
}

// GetInformer returns the informer.
func (o *Cache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	o.Opened++
	return o.Informer, o.Err
}

// RemoveInformer counts the call.
func (o *Cache) RemoveInformer(context.Context, client.Object) error {
	o.Removed++
	return nil
}

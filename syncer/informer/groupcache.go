package informer

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// CacheOptions configure the cache of a group.
type CacheOptions struct {
	Config     *rest.Config
	HTTPClient *http.Client
	Scheme     *runtime.Scheme
	Mapper     meta.RESTMapper
	// Transform changes every object before it is stored.
	Transform toolscache.TransformFunc
	// Wrap changes what makes informers; nil for no change.
	Wrap func(NewInformer) NewInformer
}

// GroupCache is the cache of a group. Of kinds that come in the group's stream,
// it has only informers. controller-runtime's cache, which also has a client, a
// source and a reader for each kind, is made when it is first needed: for
// another kind, to read objects, or if the apiserver serves no stream. It then
// has the same informers.
type GroupCache struct {
	group *Group
	opts  CacheOptions
	// newInformer makes an informer of the group.
	newInformer NewInformer

	mu sync.Mutex
	// streamed are the informers that were made without controller-runtime's
	// cache, and complete is that cache; nil until it is needed.
	streamed []streamedKind
	complete cache.Cache
}

// streamedKind is a kind with an informer that needs no source.
type streamedKind struct {
	gvk      schema.GroupVersionKind
	example  client.Object
	informer toolscache.SharedIndexInformer
	source   *laterSource
}

var _ cache.Cache = (*GroupCache)(nil)

// NewCache returns the cache of the group. Its informers live as long as the
// group, and start when they are made.
func (g *Group) NewCache(opts CacheOptions) *GroupCache {
	c := &GroupCache{group: g, opts: opts, newInformer: g.New}
	if opts.Wrap != nil {
		c.newInformer = opts.Wrap(g.New)
	}
	return c
}

// GetInformer returns the informer of a kind, and makes it if there is none.
func (c *GroupCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if !blocks(opts) && c.group.streams(obj) {
		if i, err := c.streamedInformer(obj); i != nil || err != nil {
			return i, err
		}
	}
	whole, err := c.whole(ctx)
	if err != nil {
		return nil, err
	}
	i, err := whole.GetInformer(ctx, obj, opts...)
	return unadopted(i), err
}

// blocks reports whether a caller waits until the informer has synced.
func blocks(opts []cache.InformerGetOption) bool {
	var all cache.InformerGetOptions
	for _, opt := range opts {
		opt(&all)
	}
	return all.BlockUntilSynced == nil || *all.BlockUntilSynced
}

// streamedInformer returns the informer of a kind that the stream serves, and
// makes and starts it if there is none; nil if controller-runtime's cache makes
// informers.
func (c *GroupCache) streamedInformer(obj client.Object) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, c.opts.Scheme)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.streamed {
		if k.gvk == gvk && reflect.TypeOf(k.example) == reflect.TypeOf(obj) {
			return k.informer, nil
		}
	}
	if c.complete != nil {
		return nil, nil
	}
	source := &laterSource{cache: c}
	i := c.newInformer(source, obj, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	if err := i.SetTransform(c.opts.Transform); err != nil {
		return nil, err
	}
	c.streamed = append(c.streamed, streamedKind{gvk, obj, i, source})
	i.RunWithContext(log.IntoContext(c.group.ctx, log.Log.WithName("cache")))
	return i, nil
}

// whole returns controller-runtime's cache, and makes and starts it if there is
// none.
func (c *GroupCache) whole(ctx context.Context) (cache.Cache, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.complete != nil {
		return c.complete, nil
	}
	whole, err := cache.New(c.opts.Config, cache.Options{
		HTTPClient:                  c.opts.HTTPClient,
		Scheme:                      c.opts.Scheme,
		Mapper:                      c.opts.Mapper,
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            c.opts.Transform,
		NewInformer:                 c.adopt,
	})
	if err != nil {
		return nil, err
	}
	c.group.running.Go(func() { _ = whole.Start(c.group.ctx) }) // fails only if it has started before
	if !whole.WaitForCacheSync(ctx) {                           // it has no informers yet, and starts
		return nil, context.Cause(ctx)
	}
	for _, k := range c.streamed {
		if _, err := whole.GetInformer(ctx, k.example, cache.BlockUntilSynced(false)); err != nil {
			return nil, err
		}
	}
	c.complete = whole
	return whole, nil
}

// adopt returns the informer of a kind to controller-runtime's cache: the one
// that there is already, which gets the source, or a new one.
func (c *GroupCache) adopt(
	source toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	for _, k := range c.streamed { // it does not change any more
		if k.example == example {
			k.source.set(source)
			return adopted{k.informer}
		}
	}
	return c.newInformer(source, example, resync, indexers)
}

// Get reads an object.
func (c *GroupCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	whole, err := c.whole(ctx)
	if err != nil {
		return err
	}
	return whole.Get(ctx, key, obj, opts...)
}

// List reads a list.
func (c *GroupCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	whole, err := c.whole(ctx)
	if err != nil {
		return err
	}
	return whole.List(ctx, list, opts...)
}

// GetInformerForKind returns the informer of a kind, and makes it if there is
// none.
func (c *GroupCache) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	whole, err := c.whole(ctx)
	if err != nil {
		return nil, err
	}
	i, err := whole.GetInformerForKind(ctx, gvk, opts...)
	return unadopted(i), err
}

// RemoveInformer forgets the informer of a kind, which ends with the group.
func (c *GroupCache) RemoveInformer(ctx context.Context, obj client.Object) error {
	whole, err := c.whole(ctx)
	if err != nil {
		return err
	}
	return whole.RemoveInformer(ctx, obj)
}

// IndexField adds an index.
func (c *GroupCache) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	whole, err := c.whole(ctx)
	if err != nil {
		return err
	}
	return whole.IndexField(ctx, obj, field, extract)
}

// WaitForCacheSync waits until all objects are known.
func (c *GroupCache) WaitForCacheSync(ctx context.Context) bool {
	whole, err := c.whole(ctx)
	return err == nil && whole.WaitForCacheSync(ctx)
}

// Start waits until ctx is done and the group has ended: informers start when
// they are made.
func (c *GroupCache) Start(ctx context.Context) error {
	<-ctx.Done()
	c.group.Wait()
	return nil
}

// adopted is an informer that has started before controller-runtime's cache was
// made.
type adopted struct{ toolscache.SharedIndexInformer }

// SetTransform does nothing: the informer has the transform.
func (adopted) SetTransform(toolscache.TransformFunc) error { return nil }

// RunWithContext returns at once, as that of all informers of a group.
func (adopted) RunWithContext(context.Context) {}

// unadopted returns the informer itself.
func unadopted(i cache.Informer) cache.Informer {
	if a, ok := i.(adopted); ok {
		return a.SharedIndexInformer
	}
	return i
}

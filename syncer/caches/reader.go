// Package caches reads the known objects of one side: from the informers'
// indexes, and from writes that these do not show yet.
package caches

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Reader reads objects from the indexes of a cache's informers. The cache's own
// reader copies the struct of every object that it returns, which accounted for
// a large part of the syncer's allocations. The returned objects are shared and
// must not be changed.
type Reader struct {
	cache cache.Cache

	mu        sync.RWMutex
	informers map[schema.GroupVersionKind]indexed
}

// indexed is an informer with a readable index.
type indexed interface {
	cache.Informer
	// GetIndexer returns the index.
	GetIndexer() toolscache.Indexer
}

// NewReader returns a reader of a cache, with no kind opened.
func NewReader(c cache.Cache) *Reader {
	return &Reader{cache: c, informers: map[schema.GroupVersionKind]indexed{}}
}

// Open makes the cache watch a kind, and adds the indexes when the kind is
// opened first.
func (r *Reader) Open(ctx context.Context, k *kinds.Kind, indexes toolscache.Indexers) (indexed, error) {
	informer, err := r.cache.GetInformer(ctx, k.Watched(), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	open, ok := informer.(indexed)
	if !ok {
		return nil, fmt.Errorf("an informer of type %T has no index to read", informer)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.informers[k.GVK] == open {
		return open, nil
	}
	if err := open.AddIndexers(indexes); err != nil {
		return nil, err
	}
	r.informers[k.GVK] = open
	return open, nil
}

// Close makes the cache stop watching a kind.
func (r *Reader) Close(ctx context.Context, k *kinds.Kind) error {
	r.mu.Lock()
	delete(r.informers, k.GVK)
	r.mu.Unlock()
	return r.cache.RemoveInformer(ctx, k.Watched())
}

// Opened reports whether a kind is watched.
func (r *Reader) Opened(k *kinds.Kind) bool { return r.informer(k) != nil }

// Synced reports whether all objects of a kind are known.
func (r *Reader) Synced(k *kinds.Kind) bool {
	open := r.informer(k)
	return open != nil && open.HasSynced()
}

// informer returns the informer of a kind; nil if it is not watched.
func (r *Reader) informer(k *kinds.Kind) indexed {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.informers[k.GVK]
}

// index returns the index of a kind, once it has synced.
func (r *Reader) index(ctx context.Context, k *kinds.Kind) (toolscache.Indexer, error) {
	open := r.informer(k)
	if open == nil {
		return nil, fmt.Errorf("%s objects are not watched", k.Name)
	}
	select {
	case <-open.HasSyncedChecker().Done():
		return open.GetIndexer(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Get returns an object; a nil interface if there is none.
func (r *Reader) Get(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	index, err := r.index(ctx, k)
	if err != nil {
		return nil, err
	}
	found, ok, err := index.GetByKey(toolscache.NewObjectName(key.Namespace, key.Name).String())
	if err != nil || !ok {
		return nil, err
	}
	return asObject(found)
}

// EachKey calls f with the key of each object of a kind.
func (r *Reader) EachKey(ctx context.Context, k *kinds.Kind, f func(client.ObjectKey)) error {
	index, err := r.index(ctx, k)
	if err != nil {
		return err
	}
	return eachKey(index.ListKeys(), f)
}

// EachKeyBy calls f with the key of each object of a kind that has a value of
// an index.
func (r *Reader) EachKeyBy(ctx context.Context, k *kinds.Kind, name, value string, f func(client.ObjectKey)) error {
	index, err := r.index(ctx, k)
	if err != nil {
		return err
	}
	found, err := index.IndexKeys(name, value)
	if err != nil {
		return err
	}
	return eachKey(found, f)
}

// EachBy calls f with each object of a kind that has a value of an index.
func (r *Reader) EachBy(ctx context.Context, k *kinds.Kind, name, value string, f func(client.Object)) error {
	index, err := r.index(ctx, k)
	if err != nil {
		return err
	}
	found, err := index.ByIndex(name, value)
	if err != nil {
		return err
	}
	for _, one := range found {
		obj, err := asObject(one)
		if err != nil {
			return err
		}
		f(obj)
	}
	return nil
}

// Has reports whether any object of a kind has a value of an index.
func (r *Reader) Has(ctx context.Context, k *kinds.Kind, name, value string) (bool, error) {
	index, err := r.index(ctx, k)
	if err != nil {
		return false, err
	}
	found, err := index.IndexKeys(name, value)
	return len(found) > 0, err
}

func eachKey(keys []string, f func(client.ObjectKey)) error {
	for _, one := range keys {
		key, err := toolscache.ParseObjectName(one)
		if err != nil {
			return err
		}
		f(client.ObjectKey{Namespace: key.Namespace, Name: key.Name})
	}
	return nil
}

func asObject(found any) (client.Object, error) {
	obj, ok := found.(client.Object)
	if !ok {
		return nil, fmt.Errorf("the cache holds a %T, which is not an object", found)
	}
	return obj, nil
}

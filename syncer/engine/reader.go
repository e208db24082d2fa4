package engine

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

// reader reads the objects of a cache where its informers hold them. The cache's own reader copies the struct of every object that it
// finds, and that was a good part of all that the syncer allocated. The objects are the cache's own: nobody changes them.
type reader struct {
	cache cache.Cache

	mu        sync.RWMutex
	informers map[schema.GroupVersionKind]indexed
}

// indexed is an informer whose index can be read.
type indexed interface {
	cache.Informer
	// GetIndexer returns the index.
	GetIndexer() toolscache.Indexer
}

func newReader(c cache.Cache) *reader {
	return &reader{cache: c, informers: map[schema.GroupVersionKind]indexed{}}
}

// open has the cache watch a kind, if it does not, and gives it these indexes.
func (r *reader) open(ctx context.Context, k *kinds.Kind, indexes toolscache.Indexers) (indexed, error) {
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

// close has the cache watch a kind no more.
func (r *reader) close(ctx context.Context, k *kinds.Kind) error {
	r.mu.Lock()
	delete(r.informers, k.GVK)
	r.mu.Unlock()
	return r.cache.RemoveInformer(ctx, k.Watched())
}

// opened says whether a kind is watched.
func (r *reader) opened(k *kinds.Kind) bool { return r.informer(k) != nil }

// informer is the one of a kind; nil if it is not watched.
func (r *reader) informer(k *kinds.Kind) indexed {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.informers[k.GVK]
}

// index is the index of a kind, when it is full.
func (r *reader) index(ctx context.Context, k *kinds.Kind) (toolscache.Indexer, error) {
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

// get returns an object; a nil interface if there is none.
func (r *reader) get(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
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

// eachKey calls f with the key of each object of a kind.
func (r *reader) eachKey(ctx context.Context, k *kinds.Kind, f func(client.ObjectKey)) error {
	index, err := r.index(ctx, k)
	if err != nil {
		return err
	}
	return eachKey(index.ListKeys(), f)
}

// eachKeyBy calls f with the key of each object of a kind that is found by this value in one of its indexes.
func (r *reader) eachKeyBy(ctx context.Context, k *kinds.Kind, name, value string, f func(client.ObjectKey)) error {
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

// eachBy calls f with each object of a kind that is found by this value in one of its indexes.
func (r *reader) eachBy(ctx context.Context, k *kinds.Kind, name, value string, f func(client.Object)) error {
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

// has says whether an object of a kind is found by this value in one of its indexes.
func (r *reader) has(ctx context.Context, k *kinds.Kind, name, value string) (bool, error) {
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
		return nil, fmt.Errorf("a cache holds a %T, which is no object", found)
	}
	return obj, nil
}

package informer

import "k8s.io/client-go/tools/cache"

// index is client-go's index with packed objects. Readers see the unpacked
// objects.
type index struct {
	cache.Indexer

	// made is called with each object that is unpacked again.
	made func(obj any)
}

func newIndex(indexers cache.Indexers, made func(obj any)) index {
	return index{cache.NewIndexer(keyOf, packedIndexers(indexers)), made}
}

// pack packs an object for this index.
func (i index) pack(obj any) (any, error) { return pack(obj, i.made) }

// keyOf returns the key of an object, which may be packed.
func keyOf(obj any) (string, error) {
	if p, ok := obj.(*packed); ok {
		return p.key, nil
	}
	return cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
}

// packedIndexers returns indexers for packed objects.
func packedIndexers(indexers cache.Indexers) cache.Indexers {
	all := make(cache.Indexers, len(indexers))
	for name, values := range indexers {
		all[name] = func(kept any) ([]string, error) { return values(unpack(kept)) }
	}
	return all
}

// Add stores an object.
func (i index) Add(obj any) error { return i.Update(obj) }

// Update stores an object.
func (i index) Update(obj any) error {
	kept, err := i.pack(obj)
	if err != nil {
		return err
	}
	return i.Indexer.Update(kept)
}

// Replace stores these objects and deletes all others.
func (i index) Replace(objects []any, resourceVersion string) error {
	all := make([]any, len(objects))
	for n, obj := range objects {
		var err error
		if all[n], err = i.pack(obj); err != nil {
			return err
		}
	}
	return i.Indexer.Replace(all, resourceVersion)
}

// kept returns the stored form of an object, to be unpacked later.
func (i index) kept(key string) (item any, exists bool, err error) { return i.Indexer.GetByKey(key) }

// Get returns the object with the key of this one.
func (i index) Get(obj any) (item any, exists bool, err error) {
	kept, exists, err := i.Indexer.Get(obj)
	return unpack(kept), exists, err
}

// GetByKey returns the object with this key.
func (i index) GetByKey(key string) (item any, exists bool, err error) {
	kept, exists, err := i.Indexer.GetByKey(key)
	return unpack(kept), exists, err
}

// List returns all objects.
func (i index) List() []any { return unpackAll(i.Indexer.List()) }

// Index returns the objects that share a value of an index with this one.
func (i index) Index(name string, obj any) ([]any, error) {
	kept, err := i.Indexer.Index(name, obj)
	return unpackAll(kept), err
}

// ByIndex returns the objects with a value of an index.
func (i index) ByIndex(name, value string) ([]any, error) {
	kept, err := i.Indexer.ByIndex(name, value)
	return unpackAll(kept), err
}

// AddIndexers adds indexes.
func (i index) AddIndexers(indexers cache.Indexers) error {
	return i.Indexer.AddIndexers(packedIndexers(indexers))
}

package views

import (
	"fmt"
	"strconv"

	"k8s.io/client-go/tools/cache"
)

// indexer reads a view. The objects are listed by the first read.
type indexer struct{ view *view }

var _ cache.Indexer = indexer{}

// List implements cache.Store. It cannot return an error: a list that fails
// looks like no objects, and the informer then reports that it has not synced.
func (i indexer) List() []any {
	store, err := i.view.read()
	if err != nil {
		return nil
	}
	return store.List()
}

// ListKeys implements cache.Store.
func (i indexer) ListKeys() []string {
	store, err := i.view.read()
	if err != nil {
		return nil
	}
	return store.ListKeys()
}

// Get implements cache.Store.
func (i indexer) Get(object any) (item any, exists bool, err error) {
	store, err := i.view.read()
	if err != nil {
		return nil, false, err
	}
	return store.Get(object)
}

// GetByKey implements cache.Store.
func (i indexer) GetByKey(key string) (item any, exists bool, err error) {
	store, err := i.view.read()
	if err != nil {
		return nil, false, err
	}
	return store.GetByKey(key)
}

// Index implements cache.Indexer.
func (i indexer) Index(name string, object any) ([]any, error) {
	store, err := i.view.read()
	if err != nil {
		return nil, err
	}
	return store.Index(name, object)
}

// IndexKeys implements cache.Indexer.
func (i indexer) IndexKeys(name, value string) ([]string, error) {
	store, err := i.view.read()
	if err != nil {
		return nil, err
	}
	return store.IndexKeys(name, value)
}

// ListIndexFuncValues implements cache.Indexer.
func (i indexer) ListIndexFuncValues(name string) []string {
	store, err := i.view.read()
	if err != nil {
		return nil
	}
	return store.ListIndexFuncValues(name)
}

// ByIndex implements cache.Indexer.
func (i indexer) ByIndex(name, value string) ([]any, error) {
	store, err := i.view.read()
	if err != nil {
		return nil, err
	}
	return store.ByIndex(name, value)
}

// GetIndexers implements cache.Indexer.
func (i indexer) GetIndexers() cache.Indexers {
	i.view.mu.Lock()
	defer i.view.mu.Unlock()
	return i.view.indexers
}

// AddIndexers implements cache.Indexer.
func (i indexer) AddIndexers(indexers cache.Indexers) error { return i.view.addIndexers(indexers) }

// LastStoreSyncResourceVersion implements cache.Store.
func (i indexer) LastStoreSyncResourceVersion() string {
	if current := i.view.current.Load(); current != nil {
		return strconv.FormatInt(current.revision.Load(), 10)
	}
	return ""
}

func (i indexer) readOnly() error {
	return fmt.Errorf("change the view of %s: only the feed changes it", i.view.kind.name)
}

// Add implements cache.Store.
func (i indexer) Add(any) error { return i.readOnly() }

// Update implements cache.Store.
func (i indexer) Update(any) error { return i.readOnly() }

// Delete implements cache.Store.
func (i indexer) Delete(any) error { return i.readOnly() }

// Replace implements cache.Store.
func (i indexer) Replace([]any, string) error { return i.readOnly() }

// Bookmark implements cache.Store.
func (i indexer) Bookmark(string) {}

// Resync implements cache.Store.
func (i indexer) Resync() error { return nil }

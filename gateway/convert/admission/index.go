package admission

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/internal/lastknown"
)

// Index knows which tenants have webhooks and policies: the root namespace of a
// shelved object has the cluster key as its name.
type Index struct {
	// Changed is called when the first object of a tenant comes, or the last one
	// goes; nil for nothing.
	Changed func(clusterKey string)

	mu      sync.RWMutex
	tenants map[string]*objects
}

// objects are those of one tenant by kind.
type objects struct {
	byKind map[string]sets.Set[string]
	since  time.Time
}

// NewIndex makes an empty index.
func NewIndex() *Index { return &Index{tenants: map[string]*objects{}} }

// Has reports whether a tenant has any, and since when.
func (i *Index) Has(clusterKey string) (since time.Time, has bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if of := i.tenants[clusterKey]; of != nil {
		return of.since, true
	}
	return time.Time{}, false
}

// Count returns how many of a kind a tenant has.
func (i *Index) Count(clusterKey, kind string) int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if of := i.tenants[clusterKey]; of != nil {
		return len(of.byKind[kind])
	}
	return 0
}

// For returns the view of one tenant.
func (i *Index) For(clusterKey string) View { return View{index: i, key: clusterKey} }

// View is what one tenant has.
type View struct {
	index *Index
	key   string
}

// Count returns how many of a kind there are.
func (v View) Count(kind string) int { return v.index.Count(v.key, kind) }

// IsActive reports whether there are any.
func (v View) IsActive() bool {
	_, has := v.index.Has(v.key)
	return has
}

// Handler returns what an informer calls that watches a kind of shelved objects.
func (i *Index) Handler(kind string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { i.add(kind, obj.(metav1.Object)) },
		DeleteFunc: func(obj any) {
			if object, ok := lastknown.Of[metav1.Object](obj); ok {
				i.remove(kind, object)
			}
		},
	}
}

func (i *Index) add(kind string, object metav1.Object) {
	key := object.GetNamespace()
	i.mu.Lock()
	of := i.tenants[key]
	first := of == nil
	if first {
		of = &objects{byKind: map[string]sets.Set[string]{}, since: time.Now()}
		i.tenants[key] = of
	}
	if of.byKind[kind] == nil {
		of.byKind[kind] = sets.Set[string]{}
	}
	of.byKind[kind].Insert(object.GetName())
	i.mu.Unlock()
	i.report(key, first)
}

func (i *Index) remove(kind string, object metav1.Object) {
	key := object.GetNamespace()
	i.mu.Lock()
	of, last := i.tenants[key], false
	if of != nil {
		if of.byKind[kind].Delete(object.GetName()); len(of.byKind[kind]) == 0 {
			delete(of.byKind, kind)
		}
		if last = len(of.byKind) == 0; last {
			delete(i.tenants, key)
		}
	}
	i.mu.Unlock()
	i.report(key, last)
}

func (i *Index) report(key string, changed bool) {
	if changed && i.Changed != nil {
		i.Changed(key)
	}
}

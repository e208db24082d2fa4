// Package custom syncs the custom resources that tenants name: it ensures their
// definitions in the tenants, and watches their objects on both sides for as
// long as a tenant needs them.
package custom

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// superWatcher opens and closes watches in the super cluster.
type superWatcher interface {
	// WatchSuper watches a kind. The returned checker is done when all objects
	// are known.
	WatchSuper(ctx context.Context, k *kinds.Kind) (toolscache.DoneChecker, error)
	// UnwatchSuper closes the watch of a kind and forgets its objects.
	UnwatchSuper(ctx context.Context, k *kinds.Kind) error
	// WatchStanding watches the kind of a standing resource, and UnwatchStanding
	// closes the watch. The returned checker is as for WatchSuper.
	WatchStanding(ctx context.Context, k *kinds.Kind) (toolscache.DoneChecker, error)
	UnwatchStanding(ctx context.Context, k *kinds.Kind) error
}

// Options are the parameters of [Resources].
type Options struct {
	// Build returns the kind of a custom resource, whose name is the kind's
	// with the group's.
	Build func(kinds.CustomResource) kinds.Flow
	// Standing are the resources that are watched whether a tenant syncs them or
	// not. Stands is called with the kind of each before its objects are known.
	Standing []kinds.StandingResource
	Stands   func(*kinds.Kind)
	// Lacks reports whether the super cluster is known not to have a definition.
	Lacks func(ctx context.Context, definition string) bool
	// Interval is how often definitions are compared, Timeout how long one
	// comparison may take.
	Interval, Timeout time.Duration
}

// Resources are the custom resources of all tenants. Each is watched in the
// super cluster while a tenant needs it.
type Resources struct {
	super       cluster.Cluster
	watcher     superWatcher
	opts        Options
	definitions definitions
	standing    standing

	mu      sync.Mutex
	watches map[watchKey]*watch
}

// watchKey identifies a watch: custom resources that differ in nothing else
// share it.
type watchKey struct {
	gvk       schema.GroupVersionKind
	direction tenancyv1alpha1.SyncDirection
}

// watch is a watch in the super cluster, and how many tenants need it.
type watch struct {
	kind   *kinds.Kind
	synced toolscache.DoneChecker
	users  int
}

// keyOf returns the key of the watch that a custom resource needs.
func keyOf(r kinds.CustomResource) watchKey { return watchKey{r.GVK, r.Direction} }

// NewResources returns the custom resources of a super cluster, of which none
// is watched yet.
func NewResources(super cluster.Cluster, watcher superWatcher, opts Options) *Resources {
	return &Resources{
		super: super, watcher: watcher, opts: opts, standing: standing{watched: map[string]*kinds.Kind{}}, watches: map[watchKey]*watch{},
	}
}

// NewCache returns a cache of all objects of custom resources: one is for those
// that are synced up, another for the standing ones. The cache of copies does
// not have them, since they have no label of a tenant.
func NewCache(super cluster.Cluster) (cache.Cache, error) {
	all, err := informer.NewCache(super, cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("create the cache of custom resources: %w", err)
	}
	return all, nil
}

// kind returns the kind of a custom resource.
func (c *Resources) kind(r kinds.CustomResource) *kinds.Kind {
	k := c.opts.Build(r).Erase()
	k.GVK, k.Resource = r.GVK, kinds.ResourceName(r.GVK, true)
	if k.Up != nil {
		k.Source = kinds.Everything
	}
	return k
}

// definition returns a definition of the super cluster, at most half an
// interval old.
func (c *Resources) definition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	return c.definitions.get(ctx, c.super.GetAPIReader(), name, c.opts.Interval/2)
}

// acquire watches a custom resource in the super cluster until it is released
// as often. The returned checker is done when all objects are known.
func (c *Resources) acquire(ctx context.Context, r kinds.CustomResource) (toolscache.DoneChecker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[keyOf(r)]
	if w == nil {
		k := c.kind(r)
		synced, err := c.watcher.WatchSuper(ctx, k)
		if err != nil {
			return nil, errors.Join(err, c.watcher.UnwatchSuper(ctx, k))
		}
		w = &watch{kind: k, synced: synced}
		c.watches[keyOf(r)] = w
	}
	w.users++
	return w.synced, nil
}

// release closes the watch that acquire opened, after its last user.
func (c *Resources) release(ctx context.Context, r kinds.CustomResource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[keyOf(r)]
	if w.users--; w.users > 0 {
		return nil
	}
	delete(c.watches, keyOf(r))
	return c.watcher.UnwatchSuper(ctx, w.kind)
}

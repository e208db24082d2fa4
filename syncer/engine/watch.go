package engine

import (
	"context"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/custom"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// watchBuiltin watches the super cluster's objects of all kinds that are built in, and waits until they are known.
func (e *Engine) watchBuiltin(ctx context.Context) error {
	var known []toolscache.DoneChecker
	for _, k := range e.Builtin {
		synced, err := e.WatchSuper(ctx, k)
		if err != nil {
			return err
		}
		known = append(known, synced)
	}
	if e.TokenKinds.Of != nil {
		synced, err := e.watchTokens(ctx)
		if err != nil {
			return err
		}
		known = append(known, synced)
	}
	if !toolscache.WaitFor(ctx, "", known...) {
		return ctx.Err()
	}
	return nil
}

// owner is the engaged tenant whose copy an object of the super cluster is, or nil.
func (e *Engine) owner(obj client.Object) *engagement {
	return e.session(multicluster.ClusterName(translate.OriginOf(obj).Cluster))
}

// WatchSuper watches the super cluster's objects of a kind, whose events lead
// to requests. The returned checker is done when all objects are known.
func (e *Engine) WatchSuper(ctx context.Context, k *kinds.Kind) (toolscache.DoneChecker, error) {
	informer, err := e.CacheOf(k).Open(ctx, k, caches.SuperIndexes(k))
	if err != nil {
		return nil, fmt.Errorf("watching the super cluster's %s objects: %w", k.Name, err)
	}
	registration, err := informer.AddEventHandler(e.superHandler(k))
	if err != nil {
		return nil, fmt.Errorf("watching the super cluster's %s objects: %w", k.Name, err)
	}
	return registration.HasSyncedChecker(), nil
}

// UnwatchSuper closes the watch of a kind, and forgets its objects.
func (e *Engine) UnwatchSuper(ctx context.Context, k *kinds.Kind) error {
	defer e.usage.Forget(k.Resource)
	return e.CacheOf(k).Close(ctx, k)
}

// known says whether the super cluster's objects are known. Until then, a handler that reads the cache of another kind would wait for it,
// even when the syncer is stopped meanwhile; and no tenant has begun, which looks at everything when it does.
func (e *Engine) known() bool {
	select {
	case <-e.watching:
		return true
	default:
		return false
	}
}

// viewers are the tenants for whom an event of such an object counts, with the key of each: the one whose namespace it is in or
// belongs to and, if it is in none, those that hold it because it belonged to theirs before.
func (e *Engine) viewers(k *kinds.Kind, obj client.Object) map[*engagement]client.ObjectKey {
	viewers := map[*engagement]client.ObjectKey{}
	if !e.known() {
		return viewers
	}
	if s, key := e.viewer(k, obj); s != nil {
		viewers[s] = key
	}
	if obj.GetNamespace() != "" {
		return viewers
	}
	key := client.ObjectKeyFromObject(obj)
	e.eachSession(func(s *engagement) {
		// A cache that is not full yet would be waited for. What it turns out to hold is looked at then.
		if !s.Begun.Load() || s.Kind(k.Name) == nil {
			return
		}
		if held, err := s.TenantObject(s.Ctx, k, key); held != nil || err != nil {
			viewers[s] = key
		}
	})
	return viewers
}

// viewer is the tenant that sees an object of the super cluster because of its namespace, and the tenant's key of it.
func (e *Engine) viewer(k *kinds.Kind, obj client.Object) (*engagement, client.ObjectKey) {
	namespace := k.Up.Namespace(obj)
	if namespace == "" {
		return nil, client.ObjectKey{}
	}
	spaces := e.Builtin[session.NamespaceKind]
	ns, err := e.CacheOf(spaces).Get(context.Background(), spaces, client.ObjectKey{Name: namespace})
	if err != nil || ns == nil {
		return nil, client.ObjectKey{}
	}
	origin := translate.OriginOf(ns)
	return e.session(multicluster.ClusterName(origin.Cluster)), session.TenantKeyIn(origin.Namespace, client.ObjectKeyFromObject(obj))
}

// run watches the tenant, hands out its requests once both sides are known, and ends with the engagement.
func (s *engagement) run(name multicluster.ClusterName) {
	defer s.engine.disengage(name, s)
	logger := log.Log.WithName("syncer").WithValues("tenant", name)
	if err := s.begin(); err != nil {
		if s.Ctx.Err() == nil {
			logger.Error(err, "The tenant cannot be watched; it is engaged again when its VirtualCluster changes")
		}
		return
	}
	s.Begun.Store(true)
	s.settle()
	s.Cluster.Synced()
	logger.Info("Carrying the tenant's objects")
	var running sync.WaitGroup
	for _, r := range s.Identity().Sync.CustomResources {
		running.Go(func() { custom.NewSyncer(s.engine.custom, s.Cluster, s, r).Run(s.Ctx) })
	}
	running.Wait()
	<-s.Ctx.Done()
}

// begin opens the tenant's watches, waits until all is known, and enqueues what the super cluster has of the tenant, by which
// is found what the tenant deleted while nobody looked.
func (s *engagement) begin() error {
	if err := s.open(); err != nil {
		return err
	}
	// The super cluster's caches fill at the same time.
	select {
	case <-s.engine.watching:
	case <-s.Ctx.Done():
		return s.Ctx.Err()
	}
	if err := s.catchUp(); err != nil {
		return err
	}
	return s.enqueueSuper()
}

// open opens the tenant's watches, in its turn, and waits until its objects are known.
func (s *engagement) open() error {
	giveBack, err := s.engine.beginning.take(s.Ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	var known []toolscache.DoneChecker
	for k := range s.Carried() {
		if k.Up != nil && k.Up.Class {
			continue
		}
		registration, err := s.WatchTenant(k)
		if err != nil {
			return err
		}
		known = append(known, registration.HasSyncedChecker())
	}
	used, err := s.awakenUsed()
	if err != nil {
		return err
	}
	if !toolscache.WaitFor(s.Ctx, "", append(known, used...)...) {
		return s.Ctx.Err()
	}
	return nil
}

// WatchTenant watches the tenant's objects of a kind, whose events lead to requests.
func (s *engagement) WatchTenant(k *kinds.Kind) (toolscache.ResourceEventHandlerRegistration, error) {
	informer, err := s.Cache.Open(s.Ctx, k, caches.TenantIndexes(k))
	if err != nil {
		return nil, fmt.Errorf("watching the tenant's %s objects: %w", k.Name, err)
	}
	registration, err := informer.AddEventHandler(s.tenantHandler(k))
	if err != nil {
		return nil, fmt.Errorf("watching the tenant's %s objects: %w", k.Name, err)
	}
	return registration, nil
}

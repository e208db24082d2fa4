package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// customKinds are the custom resources that sessions carry. Each is watched in the super cluster while there is a session that
// carries it.
type customKinds struct {
	build       func(kinds.CustomResource) kinds.Flow
	definitions definitions

	mu      sync.Mutex
	watched map[customWatch]*sharedWatch
}

// customWatch tells apart what is watched for custom resources: the rest of them has no part in that.
type customWatch struct {
	gvk       schema.GroupVersionKind
	direction tenancyv1alpha1.SyncDirection
}

// sharedWatch is a watch in the super cluster and how many sessions need it.
type sharedWatch struct {
	*kinds.Kind
	sessions int
}

// watchOf returns what has to be watched for a custom resource.
func watchOf(r kinds.CustomResource) customWatch { return customWatch{r.GVK, r.Direction} }

// addCustom prepares for custom resources.
func (e *Engine) addCustom(mgr mcmanager.Manager, build func(kinds.CustomResource) kinds.Flow) error {
	all, err := cache.New(e.API.GetConfig(), cache.Options{
		HTTPClient:       e.API.GetHTTPClient(),
		Scheme:           e.API.GetScheme(),
		Mapper:           e.API.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		NewInformer:      informer.New,
	})
	if err != nil {
		return fmt.Errorf("making the cache of custom resources: %w", err)
	}
	e.Caches[kinds.Everything] = caches.NewReader(all)
	e.custom = &customKinds{build: build, watched: map[customWatch]*sharedWatch{}}
	return mgr.GetLocalManager().Add(all)
}

// kind is the kind of a custom resource.
func (c *customKinds) kind(r kinds.CustomResource) *kinds.Kind {
	k := c.build(r).Erase()
	k.GVK, k.Resource = r.GVK, kinds.ResourceName(r.GVK, true)
	if k.Up != nil {
		k.Source = kinds.Everything
	}
	return k
}

// acquire watches a custom resource in the super cluster, until it is released as often.
func (e *Engine) acquire(ctx context.Context, r kinds.CustomResource) error {
	c := e.custom
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[watchOf(r)]
	if w == nil {
		w = &sharedWatch{Kind: c.kind(r)}
		if _, err := e.watchSuper(ctx, w.Kind); err != nil {
			return errors.Join(err, e.CacheOf(w.Kind).Close(ctx, w.Kind))
		}
		c.watched[watchOf(r)] = w
	}
	w.sessions++
	return nil
}

// release gives back what acquire watched.
func (e *Engine) release(ctx context.Context, r kinds.CustomResource) error {
	c := e.custom
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[watchOf(r)]
	if w.sessions--; w.sessions > 0 {
		return nil
	}
	delete(c.watched, watchOf(r))
	defer e.usage.Forget(w.Resource)
	return e.CacheOf(w.Kind).Close(ctx, w.Kind)
}

// carriage is how a session carries one custom resource.
type carriage struct {
	*engagement
	of tenancyv1alpha1.CustomResourceSync
	// carried is what is carried, and watched what is watched for it; zero until it is.
	carried kinds.CustomResource
	watched kinds.CustomResource
	// known are closed when both sides are.
	known []toolscache.DoneChecker
}

// carryCustom carries one custom resource of the tenant, as soon as both sides have it, until the session ends. It never holds up
// the tenant's other kinds; what keeps it from being carried is told to the admin.
func (s *engagement) carryCustom(of tenancyv1alpha1.CustomResourceSync) {
	about := of.Resource + "." + of.Group
	c := &carriage{engagement: s, of: of}
	defer c.end()
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 7, Cap: s.engine.interval}
	delay := backoff.DelayFunc()
	for s.Ctx.Err() == nil {
		next := s.engine.interval
		if err := c.follow(); err != nil {
			s.Cluster.Problem(about, err.Error())
			next = delay()
		} else {
			s.Cluster.Problem(about, "")
			delay = backoff.DelayFunc()
		}
		pause(s.Ctx, next)
	}
}

// follow compares the definitions of both sides, and carries what they say now.
func (c *carriage) follow() error {
	ctx, cancel := context.WithTimeout(c.Ctx, c.engine.timeout)
	defer cancel()
	r, err := c.define(ctx, c.of)
	if err != nil || r == c.carried {
		return err
	}
	if err := c.checkRights(ctx, r); err != nil {
		return err
	}
	if err := c.open(r); err != nil {
		return err
	}
	if !toolscache.WaitFor(ctx, "", c.known...) {
		return errors.New("its objects cannot be listed yet")
	}
	k := c.engine.custom.kind(r)
	c.Carry(k)
	c.carried = r
	return c.enqueueAll(k)
}

// open opens the watches that a custom resource takes on both sides.
func (c *carriage) open(r kinds.CustomResource) error {
	if watchOf(c.watched) == watchOf(r) {
		return nil
	}
	c.end()
	if err := c.engine.acquire(c.Ctx, r); err != nil {
		return err
	}
	c.watched = r
	if err := c.await(c.engine.custom.kind(r)); err != nil {
		c.end()
		return err
	}
	return nil
}

// await notes what tells that both sides are known.
func (c *carriage) await(k *kinds.Kind) error {
	super, err := c.CacheOf(k).Open(c.Ctx, k, nil)
	if err != nil {
		return err
	}
	tenant, err := c.watchTenant(k)
	if err != nil {
		return err
	}
	c.known = []toolscache.DoneChecker{super.HasSyncedChecker(), tenant.HasSyncedChecker()}
	return nil
}

// end gives back the watch in the super cluster. The tenant's ends with the session.
func (c *carriage) end() {
	if c.watched != (kinds.CustomResource{}) {
		_ = c.engine.release(c.Ctx, c.watched) // an informer that is gone already
		c.watched = kinds.CustomResource{}
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// definitionInterval is how often the definition of a custom resource is compared on both sides. They are too large to be kept
// in memory for each tenant.
const definitionInterval = time.Minute

// CustomResource is what the kind of a custom resource depends on.
type CustomResource struct {
	// GVK is its kind in the version that is carried.
	GVK schema.GroupVersionKind
	// Direction is which way it flows.
	Direction tenancyv1alpha1.SyncDirection
	// Namespaced says that its objects are in namespaces, Status that their status is a subresource.
	Namespaced, Status bool
}

// customKinds are the custom resources that sessions carry. Each is watched in the super cluster while there is a session that
// carries it.
type customKinds struct {
	build func(CustomResource) Kind
	// copies holds what carries the label of a tenant, all also what does not.
	copies, all cache.Cache

	mu      sync.Mutex
	watched map[CustomResource]*customKind
}

// customKind is the kind of a custom resource and how many sessions carry it.
type customKind struct {
	*kind
	sessions int
}

// addCustom prepares for custom resources.
func (e *Engine) addCustom(mgr mcmanager.Manager, build func(CustomResource) Kind) error {
	all, err := cache.New(e.super.GetConfig(), cache.Options{
		HTTPClient:       e.super.GetHTTPClient(),
		Scheme:           e.super.GetScheme(),
		Mapper:           e.super.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return fmt.Errorf("making the cache of custom resources: %w", err)
	}
	e.custom = &customKinds{
		build: build, copies: e.super.GetCache(), all: all, watched: map[CustomResource]*customKind{},
	}
	return mgr.GetLocalManager().Add(all)
}

// acquire returns the kind of a custom resource, which is watched in the super cluster until it is released as often.
func (e *Engine) acquire(ctx context.Context, r CustomResource) (*kind, error) {
	c := e.custom
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.watched[r]
	if k == nil {
		k = &customKind{kind: c.build(r).spec()}
		k.gvk, k.cache = r.GVK, c.copies
		if k.up != nil {
			k.cache = c.all
		}
		if err := e.watchSuper(ctx, k.kind); err != nil {
			return nil, errors.Join(err, k.cache.RemoveInformer(ctx, k.object))
		}
		c.watched[r] = k
	}
	k.sessions++
	return k.kind, nil
}

// release gives back what acquire returned.
func (e *Engine) release(ctx context.Context, r CustomResource) error {
	c := e.custom
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.watched[r]
	if k.sessions--; k.sessions > 0 {
		return nil
	}
	delete(c.watched, r)
	return k.cache.RemoveInformer(ctx, k.object)
}

// carryCustom carries one custom resource of the tenant, as soon as both sides have it, until the session ends. It never holds up
// the tenant's other kinds; what keeps it from being carried is told to the admin.
func (s *session) carryCustom(sync tenancyv1alpha1.CustomResourceSync) {
	about := sync.Resource + "." + sync.Group
	var carried *CustomResource
	defer func() {
		if carried != nil {
			_ = s.release(s.ctx, *carried) // an informer that is gone already
		}
	}()
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 7, Cap: definitionInterval}
	delay := backoff.DelayFunc()
	for s.ctx.Err() == nil {
		resource, err := s.define(s.ctx, sync)
		if err == nil && carried == nil {
			if err = s.beginCustom(resource); err == nil {
				carried = &resource
			}
		}
		pause := definitionInterval
		if err != nil {
			s.cluster.Problem(about, err.Error())
			pause = delay()
		} else {
			s.cluster.Problem(about, "")
			delay = backoff.DelayFunc()
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// define makes sure that the tenant has the definition of a custom resource, and reads from it what the kind depends on.
func (s *session) define(ctx context.Context, sync tenancyv1alpha1.CustomResourceSync) (CustomResource, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	definition, err := s.copyDefinition(ctx, sync)
	if err != nil {
		return CustomResource{}, err
	}
	scope := meta.RESTScopeNamespace
	if definition.Spec.Scope == apiextensionsv1.ClusterScoped {
		if sync.Direction == tenancyv1alpha1.SyncDown {
			return CustomResource{}, errors.New("a resource without namespaces can only flow up, since tenants would meet in its names")
		}
		scope = meta.RESTScopeRoot
	}
	gvk := schema.GroupVersionKind{Group: sync.Group, Version: sync.Version, Kind: definition.Spec.Names.Kind}
	s.cluster.Learn(&meta.RESTMapping{
		GroupVersionKind: gvk, Resource: gvk.GroupVersion().WithResource(sync.Resource), Scope: scope,
	})
	version, err := versionOf(definition, sync.Version)
	if err != nil {
		return CustomResource{}, err
	}
	return CustomResource{
		GVK:        gvk,
		Direction:  sync.Direction,
		Namespaced: scope == meta.RESTScopeNamespace,
		Status:     version.Subresources != nil && version.Subresources.Status != nil,
	}, nil
}

// beginCustom begins to carry a custom resource that both sides have.
func (s *session) beginCustom(r CustomResource) error {
	k, err := s.acquire(s.ctx, r)
	if err != nil {
		return err
	}
	if err := s.watchCustom(k); err != nil {
		return errors.Join(err, s.release(s.ctx, r))
	}
	kinds := maps.Clone(*s.kinds.Load())
	kinds[k.name] = k
	s.kinds.Store(&kinds)
	return s.enqueueAll(k)
}

// watchCustom waits until both sides of a custom resource are known.
func (s *session) watchCustom(k *kind) error {
	super, err := k.cache.GetInformer(s.ctx, k.object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	registration, err := s.watchTenant(k)
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(s.ctx.Done(), super.HasSynced, registration.HasSynced) {
		return s.ctx.Err()
	}
	return nil
}

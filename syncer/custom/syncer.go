package custom

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/pause"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// tenantCluster is the control plane of a tenant.
type tenantCluster interface {
	// GetClient returns a client of the control plane.
	GetClient() client.Client
	// Learn adds a kind to those that the client knows.
	Learn(mapping *meta.RESTMapping)
	// Problem reports to an admin what prevents the sync of something; an empty
	// message if nothing does any more.
	Problem(about, message string)
}

// tenantSyncer syncs the objects of a tenant.
type tenantSyncer interface {
	// WatchTenant watches the tenant's objects of a kind.
	WatchTenant(k *kinds.Kind) (toolscache.ResourceEventHandlerRegistration, error)
	// SyncKind adds a kind to those that are synced, or replaces the one of its
	// name, and enqueues its objects.
	SyncKind(k *kinds.Kind) error
}

// Syncer syncs one custom resource of one tenant.
type Syncer struct {
	resources *Resources
	cluster   tenantCluster
	tenant    tenantSyncer
	of        tenancyv1alpha1.CustomResourceSync

	// synced is the custom resource as it is synced, watched as it is watched;
	// zero until it is.
	synced, watched kinds.CustomResource
	// known are done when the objects of both sides are known.
	known []toolscache.DoneChecker
}

// NewSyncer returns the syncer of a custom resource that a tenant names.
func NewSyncer(resources *Resources, c tenantCluster, s tenantSyncer, of tenancyv1alpha1.CustomResourceSync) *Syncer {
	return &Syncer{resources: resources, cluster: c, tenant: s, of: of}
}

// name returns the name of the definition.
func (s *Syncer) name() string { return s.of.Resource + "." + s.of.Group }

// Run syncs the custom resource, as soon as both sides have it, until ctx ends.
// Other kinds of the tenant do not wait for it; the VirtualCluster shows what
// prevents it.
func (s *Syncer) Run(ctx context.Context) {
	defer s.release(ctx)
	interval := s.resources.opts.Interval
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 7, Cap: interval}
	delay := backoff.DelayFunc()
	for ctx.Err() == nil {
		next := interval
		if err := s.reconcile(ctx); err != nil {
			s.cluster.Problem(s.name(), err.Error())
			next = delay()
		} else {
			s.cluster.Problem(s.name(), "")
			delay = backoff.DelayFunc()
		}
		pause.For(ctx, next)
	}
}

// reconcile compares the definitions of both sides, and syncs the custom
// resource as they declare it now. Watches last as long as engaged.
func (s *Syncer) reconcile(engaged context.Context) error {
	ctx, cancel := context.WithTimeout(engaged, s.resources.opts.Timeout)
	defer cancel()
	r, err := s.define(ctx)
	if err != nil || r == s.synced {
		return err
	}
	if err := s.resources.checkRights(ctx, r, s.of.Resource); err != nil {
		return err
	}
	if err := s.resources.standFirst(ctx, s.name()); err != nil {
		return err
	}
	if err := s.watch(engaged, r); err != nil {
		return err
	}
	if !toolscache.WaitFor(ctx, "", s.known...) {
		return errors.New("its objects cannot be listed yet")
	}
	if err := s.tenant.SyncKind(s.resources.kind(r)); err != nil {
		return err
	}
	s.synced = r
	return nil
}

// errOtherDefinition is why a tenant's own definition cannot be used.
var errOtherDefinition = errors.New("the tenant has a definition of its own, of another kind or scope, or with another status, than " +
	"the super cluster's; it has to go, or to be like that")

// define ensures that the tenant has the definition of the custom resource, and
// returns what its kind depends on. The super cluster's definition decides,
// since the copies are written by its paths.
func (s *Syncer) define(ctx context.Context) (kinds.CustomResource, error) {
	super, err := s.resources.definition(ctx, s.name())
	if err != nil {
		return kinds.CustomResource{}, fmt.Errorf("the super cluster's definition: %w", err)
	}
	r, err := customResource(super, s.of)
	if err != nil {
		return r, err
	}
	if err := checkScope(r); err != nil {
		return r, err
	}
	tenant, err := ensureDefinition(ctx, s.cluster.GetClient(), super, s.of.Version)
	if err != nil {
		return r, fmt.Errorf("the tenant's definition: %w", err)
	}
	switch own, err := customResource(tenant, s.of); {
	case err != nil:
		return r, fmt.Errorf("the tenant's own definition: %w", err)
	case own != r:
		return r, errOtherDefinition
	}
	scope := meta.RESTScopeRoot
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	s.cluster.Learn(&meta.RESTMapping{
		GroupVersionKind: r.GVK, Resource: r.GVK.GroupVersion().WithResource(s.of.Resource), Scope: scope,
	})
	return r, nil
}

// watch watches the custom resource on both sides.
func (s *Syncer) watch(engaged context.Context, r kinds.CustomResource) error {
	if keyOf(s.watched) == keyOf(r) {
		return nil
	}
	s.release(engaged)
	super, err := s.resources.acquire(engaged, r)
	if err != nil {
		return err
	}
	s.watched = r
	tenant, err := s.tenant.WatchTenant(s.resources.kind(r))
	if err != nil {
		s.release(engaged)
		return err
	}
	s.known = []toolscache.DoneChecker{super, tenant.HasSyncedChecker()}
	return nil
}

// release releases the watch in the super cluster. The tenant's ends with the
// engagement.
func (s *Syncer) release(ctx context.Context) {
	if s.watched != (kinds.CustomResource{}) {
		_ = s.resources.release(ctx, s.watched) // an informer that is gone already
		s.watched = kinds.CustomResource{}
	}
}

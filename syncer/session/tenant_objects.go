package session

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// TenantObjects are the objects in a tenant's control plane.
type TenantObjects struct {
	Cluster TenantCluster
	Client  client.Client
	Cache   *caches.Reader
	// TenantRecent are the writes that the cache does not have yet.
	TenantRecent *caches.Recent
}

// TenantObject is the tenant's object as far as is known; nil if there is none.
func (s *TenantObjects) TenantObject(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	if s.Asleep(k) {
		return nil, nil
	}
	cached, err := s.Cache.Get(ctx, k, key)
	if err != nil {
		return nil, err
	}
	return s.TenantRecent.Latest(k.Name, key, cached), nil
}

// PatchTenant changes a tenant's object if it differs, and returns it as it is
// then; nil if it is gone.
func (s *TenantObjects) PatchTenant(ctx context.Context, k *kinds.Kind, was, now client.Object) (client.Object, error) {
	if was == now || wire.Equal(was, now) {
		return was, nil
	}
	if err := s.Client.Patch(ctx, now, guard.SameObject(was, client.MergeFrom(was))); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	s.TenantRecent.Put(k.Name, k.CachedTenant(now))
	return now, nil
}

// PatchTenantStatus changes the status of a tenant's object if it differs.
func (s *TenantObjects) PatchTenantStatus(ctx context.Context, k *kinds.Kind, was, now client.Object) error {
	if wire.Equal(was, now) {
		return nil
	}
	wanted := now.DeepCopyObject().(client.Object)
	if err := s.Client.Status().Patch(ctx, now, guard.StatusPatch{Was: was}); err != nil {
		return client.IgnoreNotFound(err)
	}
	// If another client has changed the status as well, the event of this write
	// can be the only one of both, and must lead to another reconcile.
	if guard.SameStatus(wanted, now) {
		s.TenantRecent.Put(k.Name, now)
	}
	return nil
}

// Report creates an event about one of the tenant's objects. The same cause
// counts up one event.
func (s *TenantObjects) Report(ctx context.Context, obj client.Object, reason, message string) error {
	reporter := pending.Reporter{Client: s.Client, Reader: s.Cluster.GetAPIReader(), Scheme: s.Cluster.GetScheme()}
	return reporter.Report(ctx, obj, reason, message)
}

// Asleep reports whether the tenant's objects of a kind are not watched. It has
// then none that came from the super cluster.
func (s *TenantObjects) Asleep(k *kinds.Kind) bool {
	return k.Up != nil && k.Up.Class && !s.Cache.Opened(k)
}

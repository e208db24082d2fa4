package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// patchTenant changes a tenant's object if it differs, and returns it as it is then; nil if it is gone.
func (s *session) patchTenant(ctx context.Context, k *kinds.Kind, was, now client.Object) (client.Object, error) {
	if was == now || wire.Equal(was, now) {
		return was, nil
	}
	if err := s.client.Patch(ctx, now, guard.SameObject(was, client.MergeFrom(was))); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	s.tenantRecent.Put(k.Name, k.CachedTenant(now))
	return now, nil
}

// patchTenantStatus changes the status of a tenant's object if it differs.
func (s *session) patchTenantStatus(ctx context.Context, k *kinds.Kind, was, now client.Object) error {
	if wire.Equal(was, now) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, now, guard.StatusPatch{Was: was}); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.tenantRecent.Put(k.Name, now)
	return nil
}

package syncdown

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/patch"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// translator translates a tenant's object into the copy that it should have.
type translator struct {
	*session.Tenant

	view     viewer
	patches  *patch.Set
	networks networkTable
}

// viewer returns what the hooks of a kind may read beside an object.
type viewer interface {
	In(ctx context.Context, namespace string) kinds.View
}

// admit rejects an object that may have no copy.
func (s *translator) admit(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if k.Down.Reserved(o.Key.Name) {
		return pending.Reject(errReservedName)
	}
	if k.Down.Admit == nil {
		return nil
	}
	if err := k.Down.Admit(s.view.In(ctx, o.Key.Namespace), o.Tenant); err != nil {
		return pending.Reject(err)
	}
	return nil
}

// desired returns the copy that the super cluster should have.
func (s *translator) desired(ctx context.Context, k *kinds.Kind, o session.Objects) (client.Object, error) {
	if err := knowNetwork(s.networks, k); err != nil {
		return nil, err
	}
	v := s.view.In(ctx, o.Key.Namespace)
	desired, err := k.Down.Desired(v, o.Tenant)
	if err != nil {
		return nil, pending.Reject(err)
	}
	meta := v.Tenant.Down(k.Name, o.Tenant, o.SuperKey)
	translate.Merge(desired, meta)
	desired.SetName(meta.Name)
	desired.SetNamespace(meta.Namespace)
	if err := joinNetwork(s.networks, k, o, desired); err != nil {
		return nil, pending.Reject(err)
	}
	if !s.patches.Has(k.Name) {
		return desired, nil
	}
	return desired, s.patch(ctx, k, desired, o.Tenant)
}

// patch applies the patches of the admin to a copy.
func (s *translator) patch(ctx context.Context, k *kinds.Kind, desired, tenant client.Object) error {
	err := s.patches.Apply(ctx, k.Name, desired, tenant, s.Identity())
	switch {
	case err == nil:
		translate.Claim(desired)
		return nil
	case ctx.Err() != nil:
		return err
	}
	return pending.Reject(err)
}

// omitted rejects the part of a tenant's object that its copy does not have.
func (s *translator) omitted(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if err := k.Down.Omitted(s.view.In(ctx, o.Key.Namespace), o.Tenant); err != nil {
		return pending.Reject(err)
	}
	return nil
}

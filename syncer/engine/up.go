package engine

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// nodeKind is the kind of the nodes that mirrored objects sit on.
const nodeKind = "Node"

// syncUp brings the tenant's copy of one object of the super cluster to what it should be.
func (s *session) syncUp(ctx context.Context, k *kind, key client.ObjectKey) error {
	defer s.locks.lock(k.name, key)()
	tenant, err := s.tenantObject(ctx, k, key)
	if err != nil {
		return err
	}
	if tenant != nil && tenant.GetLabels()[names.FromSuper] == "" {
		// The tenant's own object of that name is left alone.
		return nil
	}
	desired, err := s.shown(ctx, k, key)
	switch {
	case err != nil:
		return err
	case desired == nil:
		return s.withdraw(ctx, k, tenant)
	case tenant == nil:
		return s.publish(ctx, k, desired)
	}
	return s.refresh(ctx, k, tenant, desired)
}

// shown is what the tenant should see of an object of the super cluster; nil if nothing.
func (s *session) shown(ctx context.Context, k *kind, key client.ObjectKey) (client.Object, error) {
	t := s.identity()
	super, err := s.superObject(ctx, k, t.SuperKey(key))
	if err != nil || super == nil || super.GetDeletionTimestamp() != nil {
		return nil, err
	}
	if k.up.node {
		used, err := s.usesNode(ctx, key.Name)
		if err != nil || !used {
			return nil, err
		}
	}
	desired := k.up.desired(View{Tenant: t, Namespace: key.Namespace, Lookup: s.behind(ctx)}, super)
	if desired == nil {
		return nil, nil
	}
	labels := desired.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[names.FromSuper] = "true"
	desired.SetLabels(labels)
	return desired, nil
}

// withdraw takes away what the tenant should not see any more.
func (s *session) withdraw(ctx context.Context, k *kind, tenant client.Object) error {
	if tenant == nil || k.up.expires || tenant.GetDeletionTimestamp() != nil {
		return nil
	}
	return removeObject(ctx, s.client, tenant, nil)
}

// publish makes the tenant's copy. One that is there already shows in the cache soon, and its event leads here again.
func (s *session) publish(ctx context.Context, k *kind, desired client.Object) error {
	err := s.client.Create(ctx, desired)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return err
	}
	s.tenantRecent.put(k.name, desired)
	return nil
}

// refresh changes the tenant's copy where it differs: the object, then its status, which is a subresource.
func (s *session) refresh(ctx context.Context, k *kind, tenant, desired client.Object) error {
	merged := tenant.DeepCopyObject().(client.Object)
	k.up.merge(merged, desired)
	tenant, err := s.patchTenant(ctx, k, tenant, merged)
	if err != nil || tenant == nil || k.up.status == nil {
		return err
	}
	merged = tenant.DeepCopyObject().(client.Object)
	k.up.status(merged, desired)
	return s.patchTenantStatus(ctx, k, tenant, merged)
}

// ensureNode makes sure that the tenant has the virtual node.
func (s *session) ensureNode(ctx context.Context, name string) error {
	key := client.ObjectKey{Name: name}
	k := s.kinds[nodeKind]
	if node, err := s.tenantObject(ctx, k, key); err != nil || node != nil {
		return err
	}
	return s.syncUp(ctx, k, key)
}

// behind finds the tenant's object behind a super object.
func (s *session) behind(ctx context.Context) func(string, client.ObjectKey, types.UID) client.Object {
	return func(name string, superKey client.ObjectKey, uid types.UID) client.Object {
		k := s.kinds[name]
		if k == nil || k.down == nil {
			return nil
		}
		super, err := s.superObject(ctx, k, superKey)
		if err != nil || super == nil || (uid != "" && uid != super.GetUID()) {
			return nil
		}
		tenant, err := s.tenantObject(ctx, k, k.down.tenantKey(super))
		if err != nil {
			return nil
		}
		return tenant
	}
}

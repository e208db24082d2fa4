package syncdown

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// statusSyncer syncs the node and the status of copies up.
type statusSyncer struct {
	*session.Tenant
	*session.TenantObjects

	view  viewer
	nodes nodeEnsurer
}

// nodeEnsurer ensures that a tenant has a virtual node.
type nodeEnsurer interface {
	EnsureNode(ctx context.Context, name string) error
}

// sync binds the tenant's object to the node of the copy and updates its
// status, each with a request only if it differs. It returns the tenant's
// object as it is then; nil if it is gone.
func (s *statusSyncer) sync(ctx context.Context, k *kinds.Kind, o session.Objects) (client.Object, error) {
	tenant, err := s.bind(ctx, k, o)
	if err != nil || tenant == nil {
		return nil, err
	}
	tenant, err = s.PatchTenant(ctx, k, tenant, s.back(ctx, k, tenant, o.Super))
	if err != nil || tenant == nil {
		return nil, err
	}
	return tenant, s.show(ctx, k, tenant, o.Super)
}

// show shows the tenant the status of a copy.
func (s *statusSyncer) show(ctx context.Context, k *kinds.Kind, tenant, super client.Object) error {
	if k.Down.Status == nil {
		return nil
	}
	shown := s.shown(ctx, k, tenant, super)
	if k.Down.Same(shown, tenant) {
		return nil
	}
	return s.PatchTenantStatus(ctx, k, tenant, shown)
}

// shown returns the tenant's object with the status of a copy.
func (s *statusSyncer) shown(ctx context.Context, k *kinds.Kind, tenant, super client.Object) client.Object {
	shown := tenant.DeepCopyObject().(client.Object)
	k.Down.Status(s.view.In(ctx, tenant.GetNamespace()), shown, super)
	return shown
}

// differs reports whether sync would write anything.
func (s *statusSyncer) differs(ctx context.Context, k *kinds.Kind, o session.Objects) bool {
	m := k.Down.Mirror
	if m != nil && m.Node(o.Super) != "" && m.Node(o.Tenant) == "" && session.Stand(o.Tenant) == session.Present {
		return true
	}
	if shown := s.back(ctx, k, o.Tenant, o.Super); shown != o.Tenant && !wire.Equal(shown, o.Tenant) {
		return true
	}
	return k.Down.Status != nil && !k.Down.Same(s.shown(ctx, k, o.Tenant, o.Super), o.Tenant)
}

// back returns the tenant's object with what the super cluster has chosen
// beside the status; the same object if that is nothing.
func (s *statusSyncer) back(ctx context.Context, k *kinds.Kind, tenant, super client.Object) client.Object {
	if len(s.Identity().Transparent) == 0 && k.Down.Back == nil {
		return tenant
	}
	shown := tenant.DeepCopyObject().(client.Object)
	s.Identity().Up(shown, super)
	if k.Down.Back != nil {
		k.Down.Back(s.view.In(ctx, tenant.GetNamespace()), shown, super)
	}
	return shown
}

// bind binds the tenant's object to the node of its copy, and returns it as it
// is then; nil if it is gone.
func (s *statusSyncer) bind(ctx context.Context, k *kinds.Kind, o session.Objects) (client.Object, error) {
	m := k.Down.Mirror
	if m == nil || m.Node(o.Super) == "" || o.Tenant.GetDeletionTimestamp() != nil {
		return o.Tenant, nil
	}
	node := m.Node(o.Super)
	if err := s.nodes.EnsureNode(ctx, node); err != nil {
		return nil, err
	}
	if m.Node(o.Tenant) != "" {
		return o.Tenant, nil
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Key.Namespace, Name: o.Key.Name, UID: o.Tenant.GetUID()},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := s.Client.SubResource("binding").Create(ctx, o.Tenant, binding); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	bound := m.Bound(o.Tenant, node)
	s.TenantRecent.Assume(k.Name, bound)
	return bound, nil
}

// showDenial writes into the status of a tenant's object why it has no copy.
func (s *statusSyncer) showDenial(ctx context.Context, k *kinds.Kind, tenant client.Object, why *plugins.RejectionError) error {
	shown := tenant.DeepCopyObject().(client.Object)
	k.Down.Pending(shown, why.Reason, s.Identity().Text(why.Message, tenant.GetNamespace()))
	if k.Down.Same(shown, tenant) {
		return nil
	}
	return s.PatchTenantStatus(ctx, k, tenant, shown)
}

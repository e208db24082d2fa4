package syncdown

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// bringUp shows the tenant the node and the status of the copy, each with a request only if it differs, and returns the tenant's object,
// which is on its node then; nil if it is gone.
func (s *Syncer) bringUp(ctx context.Context, k *kinds.Kind, o session.Objects) (client.Object, error) {
	tenant, err := s.bind(ctx, k, o)
	if err != nil || tenant == nil {
		return nil, err
	}
	tenant, err = s.PatchTenant(ctx, k, tenant, s.shownBack(ctx, k, tenant, o.Super))
	if err != nil || tenant == nil {
		return nil, err
	}
	return tenant, s.showStatus(ctx, k, tenant, o.Super)
}

// showStatus shows the tenant the status of a copy.
func (s *Syncer) showStatus(ctx context.Context, k *kinds.Kind, tenant, super client.Object) error {
	if k.Down.Status == nil {
		return nil
	}
	shown := tenant.DeepCopyObject().(client.Object)
	k.Down.Status(s.view.In(ctx, tenant.GetNamespace()), shown, super)
	if k.Down.Same(shown, tenant) {
		return nil
	}
	return s.PatchTenantStatus(ctx, k, tenant, shown)
}

// shownBack is the tenant's object with what the copy says of it beside its status; the same object where that is nothing.
func (s *Syncer) shownBack(ctx context.Context, k *kinds.Kind, tenant, super client.Object) client.Object {
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

// bind binds the tenant's object to the node that its copy is on, and returns it as it is then; nil if it is gone.
func (s *Syncer) bind(ctx context.Context, k *kinds.Kind, o session.Objects) (client.Object, error) {
	m := k.Down.Mirror
	if m == nil || m.Node(o.Super) == "" || o.Tenant.GetDeletionTimestamp() != nil {
		return o.Tenant, nil
	}
	node := m.Node(o.Super)
	if err := s.Nodes.EnsureNode(ctx, node); err != nil {
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

// ShowDenial writes into the status of a tenant's object why it has no copy.
func (s *Syncer) ShowDenial(ctx context.Context, k *kinds.Kind, key client.ObjectKey, why *plugins.RejectionError) error {
	if k.Down == nil || k.Down.Held == nil {
		return nil
	}
	o, err := s.read(ctx, k, key)
	if err != nil || o.Tenant == nil || o.Super != nil {
		return err
	}
	shown := o.Tenant.DeepCopyObject().(client.Object)
	k.Down.Held(shown, why.Reason, s.Identity().Text(why.Message, key.Namespace))
	if k.Down.Same(shown, o.Tenant) {
		return nil
	}
	return s.PatchTenantStatus(ctx, k, o.Tenant, shown)
}

package engine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// bringUp shows the tenant the node and the status of the copy, each with a request only if it differs, and returns the tenant's object,
// which is on its node then; nil if it is gone.
func (s *downSyncer) bringUp(ctx context.Context, k *kinds.Kind, o objects) (client.Object, error) {
	tenant, err := s.bind(ctx, k, o)
	if err != nil || tenant == nil {
		return nil, err
	}
	tenant, err = s.patchTenant(ctx, k, tenant, s.shownBack(ctx, k, tenant, o.super))
	if err != nil || tenant == nil {
		return nil, err
	}
	return tenant, s.showStatus(ctx, k, tenant, o.super)
}

// showStatus shows the tenant the status of a copy.
func (s *downSyncer) showStatus(ctx context.Context, k *kinds.Kind, tenant, super client.Object) error {
	if k.Down.Status == nil {
		return nil
	}
	shown := tenant.DeepCopyObject().(client.Object)
	k.Down.Status(s.view.in(ctx, tenant.GetNamespace()), shown, super)
	if k.Down.Same(shown, tenant) {
		return nil
	}
	return s.patchTenantStatus(ctx, k, tenant, shown)
}

// shownBack is the tenant's object with what the copy says of it beside its status; the same object where that is nothing.
func (s *downSyncer) shownBack(ctx context.Context, k *kinds.Kind, tenant, super client.Object) client.Object {
	if len(s.identity().Transparent) == 0 && k.Down.Back == nil {
		return tenant
	}
	shown := tenant.DeepCopyObject().(client.Object)
	s.identity().Up(shown, super)
	if k.Down.Back != nil {
		k.Down.Back(s.view.in(ctx, tenant.GetNamespace()), shown, super)
	}
	return shown
}

// bind binds the tenant's object to the node that its copy is on, and returns it as it is then; nil if it is gone.
func (s *downSyncer) bind(ctx context.Context, k *kinds.Kind, o objects) (client.Object, error) {
	m := k.Down.Mirror
	if m == nil || m.Node(o.super) == "" || o.tenant.GetDeletionTimestamp() != nil {
		return o.tenant, nil
	}
	node := m.Node(o.super)
	if err := s.nodes.ensureNode(ctx, node); err != nil {
		return nil, err
	}
	if m.Node(o.tenant) != "" {
		return o.tenant, nil
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Namespace, Name: o.key.Name, UID: o.tenant.GetUID()},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := s.client.SubResource("binding").Create(ctx, o.tenant, binding); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	bound := m.Bound(o.tenant, node)
	s.tenantRecent.Assume(k.Name, bound)
	return bound, nil
}

// showHeld writes into the status of a tenant's object why it has no copy.
func (s *downSyncer) showHeld(ctx context.Context, k *kinds.Kind, key client.ObjectKey, why *plugins.RejectionError) error {
	if k.Down == nil || k.Down.Held == nil {
		return nil
	}
	o, err := s.read(ctx, k, key)
	if err != nil || o.tenant == nil || o.super != nil {
		return err
	}
	shown := o.tenant.DeepCopyObject().(client.Object)
	k.Down.Held(shown, why.Reason, s.identity().Text(why.Message, key.Namespace))
	if k.Down.Same(shown, o.tenant) {
		return nil
	}
	return s.patchTenantStatus(ctx, k, o.tenant, shown)
}

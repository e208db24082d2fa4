// Package syncup syncs the objects of the super cluster that a tenant is shown.
package syncup

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// Syncer syncs the objects of one tenant that the super cluster shows to it.
type Syncer struct {
	*session.Tenant
	*session.TenantObjects
	*session.SuperObjects

	nodes   nodeUsers
	node    *kinds.Kind
	guard   *guard.Guard
	locks   *caches.KeyLocks
	view    viewer
	classes *classes
	// lastShown tells changes that the tenant has made of nodes and classes.
	lastShown lastShown
}

// viewer returns what the hooks of a kind may read beside an object.
type viewer interface {
	In(ctx context.Context, namespace string) kinds.View
}

// nodeUsers are the mirrored objects of a tenant.
type nodeUsers interface {
	// UsesNode reports whether the tenant has an object on a node.
	UsesNode(ctx context.Context, node string) (bool, error)
}

// NewSyncer returns the syncer of what a tenant is shown. It calls open to
// watch the tenant's objects of a kind that is shown for the first time.
func NewSyncer(s *session.Session, view viewer, open func(*kinds.Kind) error) *Syncer {
	return &Syncer{
		Tenant: s.Tenant, TenantObjects: s.TenantObjects, SuperObjects: s.SuperObjects,
		nodes: s.Keys, node: s.Builtin[session.NodeKind], guard: s.Guard, locks: &s.Locks, view: view,
		classes: &classes{objects: s.TenantObjects, open: open},
	}
}

// ErrOwn is why a tenant does not see an object of the super cluster.
var ErrOwn = errors.New("the super cluster offers an object of this name, which is not shown because this one is the tenant's own; " +
	"to have it, rename or delete this one")

// Sync brings the tenant's copy of one object of the super cluster to what it
// should be.
func (s *Syncer) Sync(ctx context.Context, k *kinds.Kind, key client.ObjectKey) error {
	defer s.locks.Lock(k.Name, key)()
	o, err := s.readWatched(ctx, k, key)
	if err != nil {
		return err
	}
	own := o.tenant != nil && !session.FromSuper(o.tenant)
	switch {
	case own && o.shown != nil:
		return pending.Reject(ErrOwn)
	case own:
		return nil
	case o.shown == nil:
		return s.deleteHidden(ctx, k, o.tenant)
	case o.tenant == nil:
		return s.create(ctx, k, o.shown)
	case k.Up.Replace(o.tenant, o.shown):
		return s.deleteTenant(ctx, k, o.tenant)
	}
	if changed, err := s.syncBack(ctx, k, o); changed || err != nil {
		return err
	}
	if k.Up.Node || k.Up.Class {
		return s.updateAndReport(ctx, k, key, o)
	}
	_, err = s.update(ctx, k, o.tenant, o.shown)
	return err
}

// readWatched reads both sides from the caches. The tenant's is opened if there
// is something to show.
func (s *Syncer) readWatched(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (objects, error) {
	o, err := s.read(ctx, k, key)
	if err != nil || o.shown == nil || !s.Asleep(k) {
		return o, err
	}
	if err := s.classes.watch(k); err != nil {
		return o, err
	}
	return s.read(ctx, k, key)
}

// read reads both sides from the caches.
func (s *Syncer) read(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (o objects, err error) {
	if o.tenant, err = s.TenantObject(ctx, k, key); err != nil {
		return o, err
	}
	if o.super, err = s.SuperObject(ctx, k, s.Identity().SuperKey(key)); err != nil || o.super == nil {
		return o, err
	}
	o.shown, err = s.shown(ctx, k, o.super)
	if o.shown != nil && o.tenant != nil && k.Up.Keep != nil {
		k.Up.Keep(s.view.In(ctx, ""), o.tenant, o.shown)
	}
	return o, err
}

// shown is what the tenant should see of an object of the super cluster; nil if
// nothing.
func (s *Syncer) shown(ctx context.Context, k *kinds.Kind, super client.Object) (client.Object, error) {
	namespace, visible, err := s.sees(ctx, k, super)
	if err != nil || !visible {
		return nil, err
	}
	desired := k.Up.Desired(s.view.In(ctx, namespace), super)
	if desired == nil {
		return nil, nil
	}
	desired.SetLabels(session.Mark(desired.GetLabels()))
	if !k.Up.Expires {
		desired.SetAnnotations(session.Mark(desired.GetAnnotations()))
	}
	return desired, nil
}

// sees reports whether the tenant may see an object of the super cluster, and
// what it calls the namespace by which it may.
func (s *Syncer) sees(ctx context.Context, k *kinds.Kind, super client.Object) (namespace string, visible bool, err error) {
	t := s.Identity()
	switch {
	case t.Mode(k.Name) == tenancyv1alpha1.SyncOff:
		return "", false, nil
	case k.Up.Node && t.ShowsNode(super.GetLabels()):
		return "", true, nil
	case k.Up.Node:
		visible, err = s.nodes.UsesNode(ctx, super.GetName())
		return "", visible, err
	case k.Up.Class:
		return "", t.Offers(k.Name, super), nil
	}
	ns, err := s.SuperNamespace(ctx, k.Up.Namespace(super))
	if err != nil || ns == nil || ns.Annotations[names.VCUID] != string(t.UID) {
		return "", false, err
	}
	namespace = translate.OriginOf(ns).Namespace
	return namespace, namespace != "", nil
}

// deleteHidden deletes the tenant's copy of an object that it should not see
// any more.
func (s *Syncer) deleteHidden(ctx context.Context, k *kinds.Kind, tenant client.Object) error {
	if tenant == nil || k.Up.Expires {
		return nil
	}
	return s.deleteTenant(ctx, k, tenant)
}

// deleteTenant deletes the tenant's copy, without its finalizers: what they
// would protect belongs to the super cluster.
func (s *Syncer) deleteTenant(ctx context.Context, k *kinds.Kind, tenant client.Object) error {
	s.lastShown.forget(kinds.ObjectKey{Kind: k.Name, Key: client.ObjectKeyFromObject(tenant)})
	if tenant.GetDeletionTimestamp() == nil {
		return guard.DeleteObject(ctx, s.Client, tenant, nil)
	}
	if len(tenant.GetFinalizers()) == 0 {
		return nil
	}
	free := tenant.DeepCopyObject().(client.Object)
	free.SetFinalizers(nil)
	if err := s.Client.Patch(ctx, free, guard.SameObject(tenant, client.MergeFrom(tenant))); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.TenantRecent.Remove(k.Name, tenant)
	return nil
}

// create creates the tenant's copy. The event of a copy that exists already
// leads to another reconcile.
func (s *Syncer) create(ctx context.Context, k *kinds.Kind, desired client.Object) error {
	err := s.Client.Create(ctx, desired)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return err
	}
	s.TenantRecent.Put(k.Name, desired)
	return nil
}

// syncBack syncs down what the tenant may change of an object of the super
// cluster, and reports whether that differed.
func (s *Syncer) syncBack(ctx context.Context, k *kinds.Kind, o objects) (bool, error) {
	merged := mergedBack(k, s.view.In(ctx, ""), o)
	if merged == nil {
		return false, nil
	}
	if err := s.guard.PatchIn(ctx, k, k.Up.Namespace(o.super), merged, o.super); err != nil {
		return false, pending.Classify(err)
	}
	s.SuperRecent.Put(k.Name, merged)
	return true, nil
}

// update updates the tenant's copy where it differs: the object, then its
// status, which is a subresource. It reports whether the object differed.
func (s *Syncer) update(ctx context.Context, k *kinds.Kind, was, desired client.Object) (differed bool, err error) {
	tenant, err := s.PatchTenant(ctx, k, was, mergedUp(k, was, desired))
	if err != nil || tenant == nil {
		return false, err
	}
	differed = tenant != was
	if k.Up.Status == nil {
		return differed, nil
	}
	merged := tenant.DeepCopyObject().(client.Object)
	k.Up.Status(merged, desired)
	return differed, s.PatchTenantStatus(ctx, k, tenant, merged)
}

// updateAndReport updates the tenant's copy of a node or a class, and reports
// to the tenant if that reverts a change of its own.
func (s *Syncer) updateAndReport(ctx context.Context, k *kinds.Kind, key client.ObjectKey, o objects) error {
	at, digest := kinds.ObjectKey{Kind: k.Name, Key: key}, digestOf(mergedUp(k, k.Fresh(), o.shown))
	known := s.lastShown.is(at, digest)
	differed, err := s.update(ctx, k, o.tenant, o.shown)
	if err != nil {
		return err
	}
	s.lastShown.put(at, digest)
	if !known || !differed {
		return nil
	}
	return s.Report(ctx, o.tenant, reasonReverted, reverted)
}

// EnsureNode makes sure that the tenant has the virtual node.
func (s *Syncer) EnsureNode(ctx context.Context, name string) error {
	key := client.ObjectKey{Name: name}
	k := s.node
	if node, err := s.TenantObject(ctx, k, key); err != nil || node != nil {
		return err
	}
	return s.Sync(ctx, k, key)
}

// Differs reports whether the tenant does not hold what it should be shown.
func (s *Syncer) Differs(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (bool, error) {
	o, err := s.read(ctx, k, key)
	switch {
	case err != nil:
		return false, err
	case o.tenant == nil:
		return o.shown != nil, nil
	case o.shown == nil:
		return session.FromSuper(o.tenant) && session.Stand(o.tenant) == session.Present, nil
	case !session.FromSuper(o.tenant), k.Up.Replace(o.tenant, o.shown), mergedBack(k, s.view.In(ctx, ""), o) != nil:
		return true, nil
	}
	merged := mergedUp(k, o.tenant, o.shown)
	if k.Up.Status != nil {
		k.Up.Status(merged, o.shown)
	}
	return !wire.Equal(merged, o.tenant), nil
}

// Package own syncs the objects that the syncer has of its own in each
// namespace of a tenant.
package own

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/views"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// reader reads objects of the super cluster: from the cache, and from the
// apiserver. A [session.Session] is one.
type reader interface {
	SuperObject(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error)
	LiveCopy(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error)
	EachIn(ctx context.Context, k *kinds.Kind, namespace string, f func(client.Object)) error
}

// writer writes objects of the super cluster. A [guard.Guard] is one.
type writer interface {
	CreateOwn(ctx context.Context, k *kinds.Kind, obj client.Object) error
	PatchOwn(ctx context.Context, k *kinds.Kind, obj, was client.Object) error
	Delete(ctx context.Context, k *kinds.Kind, obj client.Object, grace *int64) error
}

// viewer returns what a hook may look at in a tenant's namespace. A
// [views.Viewer] is one.
type viewer interface {
	In(ctx context.Context, namespace string) kinds.View
}

// Syncer syncs the syncer's own objects in the namespaces of one tenant.
type Syncer struct {
	// declared returns the own objects of each kind.
	declared func() iter.Seq2[*kinds.Kind, kinds.Own[client.Object]]
	// networks has those of networks.
	networks networks
	view     viewer
	reader   reader
	writer   writer
	// recent holds writes that the reader does not show yet.
	recent   *caches.Recent
	locks    *caches.KeyLocks
	identity func() translate.Tenant
}

// NewSyncer returns what syncs the own objects in a tenant's namespaces. Specs
// are nil if tenants have no networks.
func NewSyncer(s *session.Session, view *views.Viewer, specs NetworkSpecs) *Syncer {
	return &Syncer{
		declared: s.WithOwn, networks: networksOf(s, specs),
		view: view, reader: s, writer: s.Guard, recent: s.SuperRecent, locks: &s.Locks, identity: s.Identity,
	}
}

// IsOwn reports whether an object of the super cluster is the syncer's own.
func IsOwn(k *kinds.Kind, obj client.Object) bool {
	named := func(o kinds.Own[client.Object]) bool { return o.Name == obj.GetName() }
	return !session.IsCopy(obj) && (slices.ContainsFunc(k.Down.Own, named) || isOfNetworks(k, obj.GetName()))
}

// object is one of the syncer's own objects as it is and as it should be; nil
// where there is none, or should be none.
type object struct {
	kind           *kinds.Kind
	super, desired client.Object
}

// differs reports whether the object needs a write.
func (o object) differs() bool {
	switch {
	case o.super == nil:
		return o.desired != nil
	case session.Stand(o.super) != session.Present:
		return false
	case o.desired == nil:
		return true
	}
	return session.IsCopy(o.super) || !wire.Equal(session.MergedSuper(o.kind, o.super, o.desired), o.super)
}

// Ensure makes sure that a namespace of the tenant has the syncer's own
// objects. It does not compare those that exist.
func (s *Syncer) Ensure(ctx context.Context, namespace string) error {
	for k, own := range s.declared() {
		if err := s.ensure(ctx, k, own, namespace); err != nil {
			return err
		}
	}
	return nil
}

// ensure makes sure that one of the own objects exists.
func (s *Syncer) ensure(ctx context.Context, k *kinds.Kind, own kinds.Own[client.Object], namespace string) error {
	super, err := s.reader.SuperObject(ctx, k, s.key(own, namespace))
	if err != nil || session.Stand(super) == session.Present && !session.IsCopy(super) {
		return err
	}
	return s.sync(ctx, k, own, namespace)
}

// Sync syncs the own objects of a namespace, if the object is one.
func (s *Syncer) Sync(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if k.Name != session.NamespaceKind {
		return nil
	}
	for k, own := range s.declared() {
		if err := s.sync(ctx, k, own, o.Key.Name); err != nil {
			return err
		}
	}
	return s.syncNetworks(ctx, o.Key.Name)
}

// Differs reports whether Sync would write anything.
func (s *Syncer) Differs(ctx context.Context, k *kinds.Kind, o session.Objects) (bool, error) {
	if k.Name != session.NamespaceKind {
		return false, nil
	}
	for k, own := range s.declared() {
		o, err := s.read(ctx, k, own, o.Key.Name)
		if err != nil || o.differs() {
			return true, err
		}
	}
	return s.networksDiffer(ctx, o.Key.Name)
}

// key returns the super cluster's key of an own object in a tenant's namespace.
func (s *Syncer) key(o kinds.Own[client.Object], namespace string) client.ObjectKey {
	return s.identity().SuperKey(client.ObjectKey{Namespace: namespace, Name: o.Name})
}

func (s *Syncer) read(ctx context.Context, k *kinds.Kind, own kinds.Own[client.Object], namespace string) (object, error) {
	t, key := s.identity(), s.key(own, namespace)
	o := object{kind: k, desired: own.Desired(s.view.In(ctx, namespace))}
	if o.desired != nil {
		o.desired.SetNamespace(key.Namespace)
		o.desired.SetName(key.Name)
		o.desired.SetLabels(t.Project())
	}
	var err error
	o.super, err = s.reader.SuperObject(ctx, k, key)
	return o, err
}

// sync makes one of the own objects what it should be.
func (s *Syncer) sync(ctx context.Context, k *kinds.Kind, own kinds.Own[client.Object], namespace string) error {
	defer s.locks.Lock("own "+k.Name, client.ObjectKey{Namespace: namespace, Name: own.Name})()
	o, err := s.read(ctx, k, own, namespace)
	switch {
	case err != nil || !o.differs():
		return err
	case o.super == nil:
		return s.create(ctx, o)
	case o.desired == nil:
		return s.writer.Delete(ctx, o.kind, o.super, nil)
	case session.IsCopy(o.super):
		// The copy is older than the reservation of its name: none replaces it.
		// The error leads here again.
		taken := fmt.Errorf("create %s %s: a copy has the name and is deleted first", k.Name, own.Name)
		return errors.Join(taken, s.writer.Delete(ctx, o.kind, o.super, nil))
	}
	return s.change(ctx, o)
}

// create creates one of the own objects. An object that lost its labels is in
// no cache, and is changed instead.
func (s *Syncer) create(ctx context.Context, o object) error {
	err := s.writer.CreateOwn(ctx, o.kind, o.desired)
	switch {
	case err == nil:
		s.recent.Put(o.kind.Name, o.desired)
		return nil
	case !apierrors.IsAlreadyExists(err):
		return pending.Classify(err)
	}
	if o.super, err = s.reader.LiveCopy(ctx, o.kind, client.ObjectKeyFromObject(o.desired)); err != nil || o.super == nil {
		return err
	}
	return s.change(ctx, o)
}

func (s *Syncer) change(ctx context.Context, o object) error {
	merged := session.MergedSuper(o.kind, o.super, o.desired)
	if err := s.writer.PatchOwn(ctx, o.kind, merged, o.super); err != nil {
		return pending.Classify(err)
	}
	s.recent.Put(o.kind.Name, merged)
	return nil
}

// Package own keeps the objects that the syncer has of its own in each namespace of a tenant.
package own

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/views"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// Syncer keeps the syncer's own objects in the namespaces of one tenant.
type Syncer struct {
	*session.Session
	view *views.Viewer
}

// NewSyncer makes the syncer of the own objects in a tenant\'s namespaces.
func NewSyncer(s *session.Session, view *views.Viewer) *Syncer {
	return &Syncer{Session: s, view: view}
}

// IsOwn says whether an object of the super cluster is the syncer's own.
func IsOwn(k *kinds.Kind, obj client.Object) bool {
	return !session.IsCopy(obj) && slices.ContainsFunc(k.Down.Own, func(o kinds.Own[client.Object]) bool { return o.Name == obj.GetName() })
}

// object is an object of the syncer's own as it is and as it should be; nil where there is none, or should be none.
type object struct {
	kind           *kinds.Kind
	super, desired client.Object
}

// differs says whether something is to be done about it.
func (o object) differs() bool {
	if o.super == nil || o.desired == nil {
		return o.super != o.desired
	}
	if session.Stand(o.super) != session.Present {
		return false
	}
	return session.IsCopy(o.super) || !wire.Equal(session.MergedSuper(o.kind, o.super, o.desired), o.super)
}

// Ensure makes sure that a namespace of the tenant has the syncer's own objects, and does not look into those that it has.
func (s *Syncer) Ensure(ctx context.Context, namespace string) error {
	for k, own := range s.WithOwn() {
		super, err := s.SuperObject(ctx, k, s.ownKey(own, namespace))
		if err != nil {
			return err
		}
		if session.Stand(super) == session.Present && !session.IsCopy(super) {
			continue
		}
		if err := s.syncOwn(ctx, k, own, namespace); err != nil {
			return err
		}
	}
	return nil
}

// Furnish brings the syncer's own objects in the copy of a namespace to what they should be.
func (s *Syncer) Furnish(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if k.Name != session.NamespaceKind {
		return nil
	}
	for k, own := range s.WithOwn() {
		if err := s.syncOwn(ctx, k, own, o.Key.Name); err != nil {
			return err
		}
	}
	return nil
}

// Unfurnished says whether that would write anything.
func (s *Syncer) Unfurnished(ctx context.Context, k *kinds.Kind, o session.Objects) (bool, error) {
	if k.Name != session.NamespaceKind {
		return false, nil
	}
	for k, own := range s.WithOwn() {
		o, err := s.readOwn(ctx, k, own, o.Key.Name)
		if err != nil || o.differs() {
			return true, err
		}
	}
	return false, nil
}

// ownKey is where an object of the syncer's own is for a namespace.
func (s *Syncer) ownKey(o kinds.Own[client.Object], namespace string) client.ObjectKey {
	return s.Identity().SuperKey(client.ObjectKey{Namespace: namespace, Name: o.Name})
}

func (s *Syncer) readOwn(ctx context.Context, k *kinds.Kind, own kinds.Own[client.Object], namespace string) (object, error) {
	t, key := s.Identity(), s.ownKey(own, namespace)
	o := object{kind: k, desired: own.Desired(s.view.In(ctx, namespace))}
	if o.desired != nil {
		o.desired.SetNamespace(key.Namespace)
		o.desired.SetName(key.Name)
		o.desired.SetLabels(map[string]string{names.VCName: t.Name, names.VCNamespace: t.Namespace})
	}
	var err error
	o.super, err = s.SuperObject(ctx, k, key)
	return o, err
}

// syncOwn brings one of the syncer's own objects to what it should be.
func (s *Syncer) syncOwn(ctx context.Context, k *kinds.Kind, own kinds.Own[client.Object], namespace string) error {
	defer s.Locks.Lock("own "+k.Name, client.ObjectKey{Namespace: namespace, Name: own.Name})()
	o, err := s.readOwn(ctx, k, own, namespace)
	switch {
	case err != nil || !o.differs():
		return err
	case o.super == nil:
		return s.createOwn(ctx, o)
	case o.desired == nil:
		return s.Guard.Delete(ctx, o.kind, o.super, nil)
	case session.IsCopy(o.super):
		// It had the name before the name was ours. Its event leads here again.
		return errors.Join(fmt.Errorf("%s %s is in the way and is removed first", k.Name, own.Name), s.Guard.Delete(ctx, o.kind, o.super, nil))
	}
	return s.changeOwn(ctx, o)
}

// createOwn makes one of the syncer's own objects. One that the cache does not show, since it lost its labels, is put right.
func (s *Syncer) createOwn(ctx context.Context, o object) error {
	err := s.Guard.CreateOwn(ctx, o.kind, o.desired)
	switch {
	case err == nil:
		s.SuperRecent.Put(o.kind.Name, o.desired)
		return nil
	case !apierrors.IsAlreadyExists(err):
		return pending.Classify(err)
	}
	if o.super, err = s.LiveCopy(ctx, o.kind, client.ObjectKeyFromObject(o.desired)); err != nil || o.super == nil {
		return err
	}
	return s.changeOwn(ctx, o)
}

func (s *Syncer) changeOwn(ctx context.Context, o object) error {
	merged := session.MergedSuper(o.kind, o.super, o.desired)
	if err := s.Guard.PatchOwn(ctx, o.kind, merged, o.super); err != nil {
		return pending.Classify(err)
	}
	s.SuperRecent.Put(o.kind.Name, merged)
	return nil
}

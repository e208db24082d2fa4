package syncdown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// Errors by which a copy is rejected for what it refers to. They do not say
// whose the object is.
var (
	errForeignReference  = errors.New("the name belongs to an object that is not this cluster's; use another name")
	errReservedName      = errors.New("the name is reserved; use another name")
	errUnsyncedReference = errors.New("objects of this kind are not synced, so there is none to refer to")
)

// rejectReference returns the rejection of an object that has this reference.
func rejectReference(r kinds.Reference, why error) error {
	return pending.Reject(fmt.Errorf("refers to %s %q: %w", r.Kind, r.Name, why))
}

// references ensures what an object needs in the super cluster: the namespace,
// and copies of the objects that it refers to.
type references struct {
	*session.Tenant
	*session.Kinds
	*session.SuperObjects
	*session.Requests

	own    ownEnsurer
	copies copySyncer
}

// ownEnsurer ensures the objects that the syncer has of its own.
type ownEnsurer interface {
	// Ensure ensures that these objects exist in a namespace of the tenant.
	Ensure(ctx context.Context, namespace string) error
}

// copySyncer syncs an object that another one refers to.
type copySyncer interface {
	Sync(ctx context.Context, k *kinds.Kind, key client.ObjectKey) error
}

// ensure ensures the namespace of an object and what it refers to, and returns
// what is required and missing; empty for nothing.
func (s *references) ensure(ctx context.Context, k *kinds.Kind, obj client.Object) (missing string, err error) {
	if obj.GetNamespace() == "" {
		return "", nil
	}
	ready, err := s.ensureCopy(ctx, session.NamespaceKind, client.ObjectKey{Name: obj.GetNamespace()})
	if err != nil {
		return "", err
	}
	if !ready {
		return session.NamespaceKind + " " + obj.GetNamespace(), nil
	}
	if err := s.own.Ensure(ctx, obj.GetNamespace()); err != nil {
		return "", err
	}
	return s.resolve(ctx, k, obj)
}

// ensureCopy ensures that the copy of an object exists and is current, and
// reports whether it exists. A copy that is being deleted does not count. A
// foreign object of its name is an error.
func (s *references) ensureCopy(ctx context.Context, name string, key client.ObjectKey) (bool, error) {
	k := s.Kind(name)
	if k == nil {
		return false, nil
	}
	superKey := k.Down.SuperKey(s.Identity(), key)
	if super, err := s.SuperObject(ctx, k, superKey); err != nil || super != nil && s.IsOurs(super) && s.isCurrent(k, super) {
		return session.Stand(super) == session.Present, err
	}
	if err := s.copies.Sync(ctx, k, key); err != nil && !pending.IsUnready(err) {
		return false, err
	}
	super, err := s.SuperObject(ctx, k, superKey)
	if err == nil && super != nil && !s.IsOurs(super) {
		err = guard.ErrForeign
	}
	return err == nil && session.Stand(super) == session.Present, err
}

// isCurrent reports whether a copy has what others rely on. A copy that is
// being deleted is not updated.
func (s *references) isCurrent(k *kinds.Kind, super client.Object) bool {
	return session.Stand(super) != session.Present || k.Down.Current(s.Identity(), super)
}

// resolve ensures the copies of all objects that an object refers to, and
// returns one that is required and missing; empty for none. A copy may refer
// only to copies of its own tenant: any other object of the super cluster is
// the platform's, and the tenant may not read it.
func (s *references) resolve(ctx context.Context, k *kinds.Kind, obj client.Object) (missing string, err error) {
	for _, ref := range kinds.References(k, obj) {
		exists, err := s.resolveReference(ctx, k, ref, ref.KeyFor(obj.GetNamespace()))
		if err != nil {
			return "", err
		}
		if !exists && ref.Required {
			missing = cmp.Or(missing, ref.Kind+" "+ref.Name)
		}
	}
	return missing, nil
}

// resolveReference ensures the copy of one object that another of kind k refers
// to, and reports whether it exists.
func (s *references) resolveReference(ctx context.Context, k *kinds.Kind, ref kinds.Reference, key client.ObjectKey) (bool, error) {
	to := s.Kind(ref.Kind)
	if to == nil {
		to = s.Builtin[ref.Kind]
	}
	switch {
	case to == nil && strings.Contains(ref.Kind, "."):
		return false, rejectReference(ref, errUnsyncedReference)
	case to == nil: // which the super cluster does not serve
		return false, nil
	case to.Down == nil: // which the super cluster shows to the tenant
		return true, nil
	case to.Down.Reserved(ref.Name):
		return false, rejectReference(ref, errReservedName)
	}
	exists, err := s.ensureReferred(ctx, k, to, key)
	switch {
	case errors.Is(err, guard.ErrForeign):
		return false, rejectReference(ref, errForeignReference)
	case err != nil && ref.Required:
		return false, err
	case err != nil:
		// It is reconciled separately, with its own backoff and its own event.
		s.Enqueue(s.Request(to, key), queue.PriorityNormal)
	}
	if exists || ref.Required {
		return exists, nil
	}
	return false, s.checkFree(ctx, to, ref, key)
}

// ensureReferred ensures the copy of an object that another of kind k refers
// to. If both are of one kind, it only reports whether the copy exists: objects
// that refer to each other would wait for each other's locks.
func (s *references) ensureReferred(ctx context.Context, k, to *kinds.Kind, key client.ObjectKey) (bool, error) {
	if to != k {
		return s.ensureCopy(ctx, to.Name, key)
	}
	super, err := s.SuperObject(ctx, to, to.Down.SuperKey(s.Identity(), key))
	return super != nil && s.IsOurs(super), err
}

// checkFree rejects a reference to a name that a foreign object has in the
// super cluster. It reads live, since the cache has only copies.
func (s *references) checkFree(ctx context.Context, to *kinds.Kind, ref kinds.Reference, key client.ObjectKey) error {
	found, err := s.LiveCopy(ctx, to, to.Down.SuperKey(s.Identity(), key))
	if err != nil {
		return fmt.Errorf("look for %s %s in the super cluster: %w", ref.Kind, ref.Name, err)
	}
	if found != nil && !s.IsOurs(found) {
		return rejectReference(ref, errForeignReference)
	}
	return nil
}

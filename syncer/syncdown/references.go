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

// Errors by which a copy is rejected for what it refers to. They do not say whose the object is.
var (
	errForeignReference  = errors.New("the name belongs to an object that is not this cluster's; use another name")
	errReservedName      = errors.New("the name is reserved; use another name")
	errUnsyncedReference = errors.New("objects of this kind are not synced, so there is none to refer to")
)

// rejectReference returns the rejection of an object that has this reference.
func rejectReference(r kinds.Reference, why error) error {
	return pending.Reject(fmt.Errorf("refers to %s %q: %w", r.Kind, r.Name, why))
}

// ensure makes sure that the copy of an object exists and is current, and reports whether it exists. One that is being deleted does not
// count. An object of the super cluster that is not the tenant's is an error.
func (s *Syncer) ensure(ctx context.Context, name string, key client.ObjectKey) (bool, error) {
	k := s.Kind(name)
	if k == nil {
		return false, nil
	}
	superKey := k.Down.SuperKey(s.Identity(), key)
	if super, err := s.SuperObject(ctx, k, superKey); err != nil || super != nil && s.IsOurs(super) && s.isCurrent(k, super) {
		return session.Stand(super) == session.Present, err
	}
	if err := s.Sync(ctx, k, key); err != nil && !pending.IsUnready(err) {
		return false, err
	}
	super, err := s.SuperObject(ctx, k, superKey)
	if err == nil && super != nil && !s.IsOurs(super) {
		err = guard.ErrForeign
	}
	return err == nil && session.Stand(super) == session.Present, err
}

// isCurrent reports whether a copy has what others rely on. One that is being deleted is left as it is.
func (s *Syncer) isCurrent(k *kinds.Kind, super client.Object) bool {
	return session.Stand(super) != session.Present || k.Down.Current(s.Identity(), super)
}

// resolve ensures the copies of all that an object refers to, and returns one of those that are required and missing; empty for none. A
// copy may name only copies of its own tenant: any other object of such a name in the super cluster is the platform's, and the tenant may
// not read it.
func (s *Syncer) resolve(ctx context.Context, k *kinds.Kind, obj client.Object) (missing string, err error) {
	for _, ref := range kinds.References(k, obj) {
		there, err := s.resolveReference(ctx, k, ref, ref.KeyFor(obj.GetNamespace()))
		if err != nil {
			return "", err
		}
		if !there && ref.Required {
			missing = cmp.Or(missing, ref.Kind+" "+ref.Name)
		}
	}
	return missing, nil
}

// resolveReference ensures the copy of one object that another of kind k refers to, and reports whether it exists.
func (s *Syncer) resolveReference(ctx context.Context, k *kinds.Kind, ref kinds.Reference, key client.ObjectKey) (bool, error) {
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
	there, err := s.ensureReferred(ctx, k, to, key)
	switch {
	case errors.Is(err, guard.ErrForeign):
		return false, rejectReference(ref, errForeignReference)
	case err != nil && ref.Required:
		return false, err
	case err != nil:
		// It is reconciled separately, with its own backoff and its own event.
		s.Enqueue(s.Request(to, key), queue.PriorityNormal)
	}
	if there || ref.Required {
		return there, nil
	}
	return false, s.checkFree(ctx, to, ref, key)
}

// ensureReferred ensures the copy of what an object refers to. What is of the object's own kind is only looked up: objects that refer
// to each other would wait for each other's locks.
func (s *Syncer) ensureReferred(ctx context.Context, k, to *kinds.Kind, key client.ObjectKey) (bool, error) {
	if to != k {
		return s.ensure(ctx, to.Name, key)
	}
	super, err := s.SuperObject(ctx, to, to.Down.SuperKey(s.Identity(), key))
	return super != nil && s.IsOurs(super), err
}

// checkFree rejects a reference to a name that an object in the super cluster has which is not the tenant's copy. It reads live:
// the cache holds only copies.
func (s *Syncer) checkFree(ctx context.Context, to *kinds.Kind, ref kinds.Reference, key client.ObjectKey) error {
	found, err := s.LiveCopy(ctx, to, to.Down.SuperKey(s.Identity(), key))
	if err != nil {
		return fmt.Errorf("look for %s %s in the super cluster: %w", ref.Kind, ref.Name, err)
	}
	if found != nil && !s.IsOurs(found) {
		return rejectReference(ref, errForeignReference)
	}
	return nil
}

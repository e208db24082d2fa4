package syncdown

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// deleter deletes copies, and objects of the tenant that are deleted with them.
type deleter struct {
	*session.TenantObjects
	*session.SuperObjects

	guard  *guard.Guard
	gate   deletionGate
	grace  *gracePeriods
	status statusShower
	tokens tokenDropper
	copies copyRestorer
}

// deletionGate reports whether a copy may be deleted that the tenant did not
// delete.
type deletionGate interface {
	// AllowRemoval returns why a copy may not be deleted of which the tenant
	// has no object, or another one.
	AllowRemoval(ctx context.Context, k *kinds.Kind, o session.Objects) error
	// AllowRelease returns why a copy may not be deleted that no object of the
	// tenant refers to any more.
	AllowRelease(ctx context.Context) error
}

// statusShower shows a tenant the status of a copy.
type statusShower interface {
	show(ctx context.Context, k *kinds.Kind, tenant, super client.Object) error
}

// tokenDropper deletes the tokens of an object without a copy.
type tokenDropper interface {
	Drop(ctx context.Context, k *kinds.Kind, o session.Objects) error
}

// copyRestorer restores copies that the cache does not have.
type copyRestorer interface {
	restore(ctx context.Context, k *kinds.Kind, o session.Objects) error
}

// deleteSuper deletes a copy that should not exist. If the tenant's object
// stays, its status is cleared.
func (s *deleter) deleteSuper(ctx context.Context, k *kinds.Kind, o session.Objects, observed observation) error {
	if err := s.allow(ctx, k, o, observed); err != nil {
		return err
	}
	if o.Tenant != nil && !observed.wanted && !observed.mirrored {
		if err := s.status.show(ctx, k, o.Tenant, k.Fresh()); err != nil {
			return err
		}
	}
	return s.deleteCopy(ctx, k, o)
}

// allow returns why a copy may not be deleted.
func (s *deleter) allow(ctx context.Context, k *kinds.Kind, o session.Objects, observed observation) error {
	switch {
	case !observed.same:
		return s.gate.AllowRemoval(ctx, k, o)
	case !observed.wanted && k.Down.OnDemand:
		return s.gate.AllowRelease(ctx)
	}
	return nil
}

// deleteCopy deletes the copy, with the tenant's grace period if it is
// mirrored.
func (s *deleter) deleteCopy(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	var grace *int64
	if m := k.Down.Mirror; m != nil {
		grace = s.grace.of(m, o)
	}
	return s.guard.Delete(ctx, k, o.Super, grace)
}

// evict clears the status of the tenant's object and deletes its copy.
func (s *deleter) evict(ctx context.Context, k *kinds.Kind, o session.Objects, why error) error {
	if err := s.status.show(ctx, k, o.Tenant, k.Fresh()); err != nil {
		return err
	}
	if session.Stand(o.Super) == session.Present {
		if err := s.deleteCopy(ctx, k, o); err != nil {
			return err
		}
	}
	return why
}

// deleteTenant deletes the tenant's object with the grace period of its copy,
// which is being deleted.
func (s *deleter) deleteTenant(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	return guard.DeleteObject(ctx, s.Client, o.Tenant, k.Down.Mirror.GracePeriodSeconds(o.Super))
}

// finalizeTenant completes the deletion of the tenant's object, whose copy is
// gone. If the tenant did not delete the object, the super cluster is read: its
// cache has only copies with the labels of the syncer, which can be removed.
func (s *deleter) finalizeTenant(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if o.Tenant.GetDeletionTimestamp() == nil {
		found, err := s.LiveCopy(ctx, k, o.SuperKey)
		if err != nil {
			return err
		}
		if found != nil {
			return s.copies.restore(ctx, k, o)
		}
	}
	if err := guard.DeleteObject(ctx, s.Client, o.Tenant, ptr.To[int64](0)); err != nil {
		return err
	}
	s.TenantRecent.Remove(k.Name, o.Tenant)
	// The last event of the object can have come already.
	return s.tokens.Drop(ctx, k, session.Objects{Key: o.Key, SuperKey: o.SuperKey})
}

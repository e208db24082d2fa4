package syncdown

import (
	"context"

	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// retract takes away a copy that should not be there. An object that is to have none any more says nothing of the one that it
// had.
func (s *Syncer) retract(ctx context.Context, k *kinds.Kind, o session.Objects, p pair) error {
	if err := s.allowRetract(ctx, k, o, p); err != nil {
		return err
	}
	if o.Tenant != nil && !p.wanted && !p.mirrored {
		if err := s.showStatus(ctx, k, o.Tenant, k.Fresh()); err != nil {
			return err
		}
	}
	return s.remove(ctx, k, o)
}

// allowRetract says whether a copy may be taken away.
func (s *Syncer) allowRetract(ctx context.Context, k *kinds.Kind, o session.Objects, p pair) error {
	switch {
	case !p.same:
		return s.Removals.AllowRemoval(ctx, k, o)
	case !p.wanted && k.Down.OnDemand:
		return s.Removals.AllowRelease(ctx)
	}
	return nil
}

// remove deletes the copy, a mirrored one in the time that the tenant gives it.
func (s *Syncer) remove(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	var grace *int64
	if m := k.Down.Mirror; m != nil {
		grace = s.timeToEnd(m, o)
	}
	return s.Guard.Delete(ctx, k, o.Super, grace)
}

// finish ends the tenant's object, whose copy is gone. Where the tenant did not ask for that, the super cluster has the last
// word: its cache shows only what carries our labels, and somebody may have taken them away.
func (s *Syncer) finish(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if o.Tenant.GetDeletionTimestamp() == nil {
		found, err := s.LiveCopy(ctx, k, o.SuperKey)
		if err != nil {
			return err
		}
		if found != nil {
			return s.reclaim(ctx, k, o)
		}
	}
	if err := guard.DeleteObject(ctx, s.Client, o.Tenant, ptr.To[int64](0)); err != nil {
		return err
	}
	s.TenantRecent.Remove(k.Name, o.Tenant)
	// Its last event may have come already.
	return s.Tokens.Drop(ctx, k, session.Objects{Key: o.Key, SuperKey: o.SuperKey})
}

// reclaim gives a copy its labels back.
func (s *Syncer) reclaim(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	desired, err := s.desired(ctx, k, o)
	if err != nil {
		return err
	}
	return s.takeOver(ctx, k, o, desired)
}

// evict deletes a copy and clears the status of the tenant's object.
func (s *Syncer) evict(ctx context.Context, k *kinds.Kind, o session.Objects, why error) error {
	if err := s.showStatus(ctx, k, o.Tenant, k.Fresh()); err != nil {
		return err
	}
	if session.Stand(o.Super) == session.Present {
		if err := s.remove(ctx, k, o); err != nil {
			return err
		}
	}
	return why
}

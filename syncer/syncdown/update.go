package syncdown

import (
	"cmp"
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// update brings the copy to what the tenant declares and its status up to the tenant, and returns both as they are then. What is refused
// on the way down keeps nothing from coming up.
func (s *Syncer) update(ctx context.Context, k *kinds.Kind, o session.Objects) (session.Objects, error) {
	desired, err := s.desired(ctx, k, o)
	switch {
	case errors.As(err, new(kinds.EvictionError)):
		return o, s.evict(ctx, k, o, err)
	case err == nil && k.Down.Replace(o.Super, desired):
		return o, s.remove(ctx, k, o)
	case err == nil && session.Stand(o.Super) == session.Present && s.copyDiffers(ctx, k, o, desired):
		o.Super, err = s.bringResolved(ctx, k, o, desired)
	}
	if err != nil && !pending.IsRejection(err) {
		return o, err
	}
	var why error
	if o.Tenant, why = s.bringUp(ctx, k, o); o.Tenant == nil {
		return o, cmp.Or(why, err)
	}
	// Tokens say which node the object is on. What cannot be renewed keeps nothing from coming up: the old tokens are good for a while.
	return o, cmp.Or(why, err, s.Tokens.Ensure(ctx, k, o), s.Own.Furnish(ctx, k, o), s.omitted(ctx, k, o))
}

// bringResolved changes the copy where it differs, if it refers only to copies of the tenant, and returns the changed copy.
func (s *Syncer) bringResolved(ctx context.Context, k *kinds.Kind, o session.Objects, desired client.Object) (client.Object, error) {
	if _, err := s.resolve(ctx, k, o.Tenant); err != nil {
		return o.Super, err
	}
	if len(k.Down.Parts) == 0 {
		return s.bringChanges(ctx, k, o, desired)
	}
	release, err := s.reserve(k, session.MergedSuper(k, o.Super, desired), o.Super)
	if err != nil {
		return o.Super, err
	}
	changed, err := s.bringChanges(ctx, k, o, desired)
	if err != nil {
		release()
	}
	return changed, err
}

// bringChanges changes the copy where it differs, and returns it as it is then. What is refused of it does not hold up the
// rest.
func (s *Syncer) bringChanges(ctx context.Context, k *kinds.Kind, o session.Objects, desired client.Object) (client.Object, error) {
	changed, why := s.patchSuper(ctx, k, o.Super, desired)
	if why == nil {
		o.Super = changed
	} else if !pending.IsRejection(why) {
		return nil, why
	}
	for _, sub := range k.Down.Subresources {
		var err error
		o.Super, err = s.patchSubresource(ctx, k, o, sub)
		if err != nil && !pending.IsRejection(err) {
			return nil, err
		}
		why = cmp.Or(why, err)
		if denied := sub.Admit(s.view.In(ctx, o.Key.Namespace), o.Super, o.Tenant); denied != nil {
			why = pending.Reject(errors.Join(why, denied))
		}
	}
	return o.Super, why
}

// copyDiffers reports whether the copy does not hold what it should, or what it would have to if that were admitted.
func (s *Syncer) copyDiffers(ctx context.Context, k *kinds.Kind, o session.Objects, desired client.Object) bool {
	merged := session.MergedSuper(k, o.Super, desired)
	for _, sub := range k.Down.Subresources {
		v := s.view.In(ctx, o.Key.Namespace)
		if sub.Admit(v, o.Super, o.Tenant) != nil {
			return true
		}
		sub.Merge(v, merged, o.Tenant)
	}
	return !wire.Equal(merged, o.Super)
}

// patchSuper changes the copy if it differs, and returns it as it is then.
func (s *Syncer) patchSuper(ctx context.Context, k *kinds.Kind, super, desired client.Object) (client.Object, error) {
	merged := session.MergedSuper(k, super, desired)
	if wire.Equal(merged, super) {
		return super, nil
	}
	if err := s.Guard.Patch(ctx, k, merged, super); err != nil {
		return nil, pending.Classify(err)
	}
	s.SuperRecent.Put(k.Name, k.CachedSuper(merged))
	return merged, nil
}

// outdated says whether one of two sides that both exist does not hold what it should.
func (s *Syncer) outdated(ctx context.Context, k *kinds.Kind, o session.Objects) (bool, error) {
	desired, err := s.desired(ctx, k, o)
	if pending.IsRejection(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if k.Down.Replace(o.Super, desired) {
		return true, nil
	}
	if session.Stand(o.Super) == session.Present && s.copyDiffers(ctx, k, o, desired) {
		return true, nil
	}
	if unfurnished, err := s.Own.Unfurnished(ctx, k, o); unfurnished || err != nil {
		return unfurnished, err
	}
	if _, wanting, err := s.Tokens.Compare(ctx, k, o); wanting || err != nil {
		return wanting, err
	}
	m := k.Down.Mirror
	if m != nil && m.Node(o.Super) != "" && m.Node(o.Tenant) == "" && session.Stand(o.Tenant) == session.Present {
		return true, nil
	}
	if shown := s.shownBack(ctx, k, o.Tenant, o.Super); shown != o.Tenant && !wire.Equal(shown, o.Tenant) {
		return true, nil
	}
	if k.Down.Status == nil {
		return false, nil
	}
	shown := o.Tenant.DeepCopyObject().(client.Object)
	k.Down.Status(s.view.In(ctx, o.Key.Namespace), shown, o.Super)
	return !k.Down.Same(shown, o.Tenant), nil
}

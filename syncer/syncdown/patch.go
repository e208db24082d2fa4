package syncdown

import (
	"cmp"
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// patcher patches copies and their subresources where they differ.
type patcher struct {
	*session.SuperObjects

	guard   *guard.Guard
	view    viewer
	ensurer referenceEnsurer
}

// referenceEnsurer ensures what an object needs in the super cluster.
type referenceEnsurer interface {
	ensure(ctx context.Context, k *kinds.Kind, obj client.Object) (missing string, err error)
}

// differs reports whether the copy differs from what it should be, or from what
// it would be if the changes of its subresources were admitted.
func (s *patcher) differs(ctx context.Context, k *kinds.Kind, o session.Objects, desired client.Object) bool {
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

// patchAll patches the copy and its subresources, and returns the copy as it is
// then. If one of them is rejected, the others are patched.
func (s *patcher) patchAll(ctx context.Context, k *kinds.Kind, o session.Objects, desired client.Object) (client.Object, error) {
	changed, why := s.patch(ctx, k, o.Super, desired)
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

// patch patches the copy if it differs, and returns it as it is then.
func (s *patcher) patch(ctx context.Context, k *kinds.Kind, super, desired client.Object) (client.Object, error) {
	merged := session.MergedSuper(k, super, desired)
	if wire.Equal(merged, super) {
		return super, nil
	}
	if err := s.guard.Patch(ctx, k, merged, super); err != nil {
		return nil, pending.Classify(err)
	}
	s.SuperRecent.Put(k.Name, k.CachedSuper(merged))
	return merged, nil
}

// patchSubresource patches a subresource of the copy if it differs, and returns
// the copy as it is then, even if a part is rejected. Objects that the tenant's
// object refers to by now are ensured first.
func (s *patcher) patchSubresource(
	ctx context.Context, k *kinds.Kind, o session.Objects, sub kinds.Subresource[client.Object],
) (client.Object, error) {
	merged := o.Super.DeepCopyObject().(client.Object)
	sub.Merge(s.view.In(ctx, o.Key.Namespace), merged, o.Tenant)
	if wire.Equal(merged, o.Super) {
		return o.Super, nil
	}
	if missing, err := s.ensurer.ensure(ctx, k, o.Tenant); err != nil || missing != "" {
		return o.Super, err
	}
	parts := sub.Parts(o.Super, merged)
	changed, err := s.writeSubresource(ctx, k, sub.Name, merged, o.Super)
	if len(parts) < 2 || !pending.IsRejection(err) {
		return changed, err
	}
	return s.patchParts(ctx, k, o.Super, sub.Name, parts)
}

// patchParts writes each part of a rejected patch by itself. Each contains only
// what it adds, so it keeps what earlier parts have added.
func (s *patcher) patchParts(
	ctx context.Context, k *kinds.Kind, super client.Object, name string, parts []client.Object,
) (client.Object, error) {
	latest, whys := super, []error(nil)
	for _, part := range parts {
		changed, err := s.writeSubresource(ctx, k, name, part, super)
		switch {
		case err == nil:
			latest = changed
		case pending.IsRejection(err):
			whys = append(whys, err)
		default:
			return latest, err
		}
	}
	if len(whys) > 0 {
		return latest, pending.Reject(errors.Join(whys...))
	}
	return latest, nil
}

// writeSubresource writes a subresource of a copy, and returns the copy as it
// is then.
func (s *patcher) writeSubresource(ctx context.Context, k *kinds.Kind, name string, merged, was client.Object) (client.Object, error) {
	if err := s.guard.PatchSubresource(ctx, k, name, merged, was); err != nil {
		return was, pending.Classify(err)
	}
	s.SuperRecent.Put(k.Name, merged)
	return merged, nil
}

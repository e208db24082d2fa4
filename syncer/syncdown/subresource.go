package syncdown

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// patchSubresource changes what of the copy is written through a subresource, if it differs, and returns the copy as it is
// then, also where a part of that was refused. What the tenant's object has come to refer to goes first.
func (s *Syncer) patchSubresource(
	ctx context.Context, k *kinds.Kind, o session.Objects, sub kinds.Subresource[client.Object],
) (client.Object, error) {
	merged := o.Super.DeepCopyObject().(client.Object)
	sub.Merge(s.view.In(ctx, o.Key.Namespace), merged, o.Tenant)
	if wire.Equal(merged, o.Super) {
		return o.Super, nil
	}
	if missing, err := s.prepare(ctx, k, o.Tenant); err != nil || missing != "" {
		return o.Super, err
	}
	parts := sub.Parts(o.Super, merged)
	changed, err := s.writeSubresource(ctx, k, sub.Name, merged, o.Super)
	if len(parts) < 2 || !pending.IsRejection(err) {
		return changed, err
	}
	return s.patchParts(ctx, k, o.Super, sub.Name, parts)
}

// patchParts writes the parts of what was refused as a whole, each by itself. Each says only what it adds, so that what the ones before
// have added stays.
func (s *Syncer) patchParts(
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

// writeSubresource changes a copy through a subresource, and returns it as it is then.
func (s *Syncer) writeSubresource(ctx context.Context, k *kinds.Kind, name string, merged, was client.Object) (client.Object, error) {
	if err := s.Guard.PatchSubresource(ctx, k, name, merged, was); err != nil {
		return was, pending.Classify(err)
	}
	s.SuperRecent.Put(k.Name, merged)
	return merged, nil
}

package syncdown

import (
	"cmp"
	"context"
	"errors"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// updater updates both sides of an object that has a copy.
type updater struct {
	contents   *contents
	translator *translator
	writer     *writer
	status     *statusSyncer
	deleter    *deleter
	tokens     tokenEnsurer
	own        ownSyncer
}

// ownSyncer syncs the objects that the syncer has of its own in a namespace.
type ownSyncer interface {
	// Sync syncs these objects if the object is a namespace.
	Sync(ctx context.Context, k *kinds.Kind, o session.Objects) error
}

// update syncs the spec down and the status up. Contents that no cache holds
// are read first, unless they have been compared in these versions.
func (s *updater) update(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if !k.ByMetadata() {
		_, err := s.updateBoth(ctx, k, o)
		return err
	}
	if s.contents.compare(k, o) == compared {
		return nil
	}
	o, found, err := s.contents.ofBoth(ctx, k, o)
	if err != nil || !found {
		return err
	}
	if o, err = s.updateBoth(ctx, k, o); err == nil && o.Tenant != nil {
		s.contents.agree(k, o)
	}
	return err
}

// updateBoth syncs the spec down and the status up, and returns both sides as
// they are then. The status is synced up even if the spec is rejected.
func (s *updater) updateBoth(ctx context.Context, k *kinds.Kind, o session.Objects) (session.Objects, error) {
	desired, err := s.translator.desired(ctx, k, o)
	switch {
	case errors.As(err, new(kinds.EvictionError)):
		return o, s.deleter.evict(ctx, k, o, err)
	case err == nil && k.Down.Replace(o.Super, desired):
		return o, s.deleter.deleteCopy(ctx, k, o)
	case err == nil && session.Stand(o.Super) == session.Present:
		o.Super, err = s.writer.update(ctx, k, o, desired)
	}
	if err != nil && !pending.IsRejection(err) {
		return o, err
	}
	var why error
	if o.Tenant, why = s.status.sync(ctx, k, o); o.Tenant == nil {
		return o, cmp.Or(why, err)
	}
	// Tokens name the node of the object, so it is bound first. Tokens that
	// cannot be renewed do not delay the status: the old ones are still valid.
	return o, cmp.Or(why, err, s.tokens.Ensure(ctx, k, o), s.own.Sync(ctx, k, o), s.translator.omitted(ctx, k, o))
}

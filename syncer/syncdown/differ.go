package syncdown

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// comparer reports whether an update would write anything.
type comparer struct {
	translator *translator
	patches    *patcher
	status     *statusSyncer
	tokens     tokenComparer
	own        ownComparer
}

// tokenComparer reports what tokens an object has and needs.
type tokenComparer interface {
	Compare(ctx context.Context, k *kinds.Kind, o session.Objects) (kept client.Object, wanting bool, err error)
}

// ownComparer reports whether the syncer's own objects are up to date.
type ownComparer interface {
	Differs(ctx context.Context, k *kinds.Kind, o session.Objects) (bool, error)
}

// differs reports whether one of two sides that both exist is not up to date.
func (s *comparer) differs(ctx context.Context, k *kinds.Kind, o session.Objects) (bool, error) {
	desired, err := s.translator.desired(ctx, k, o)
	if pending.IsRejection(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if k.Down.Replace(o.Super, desired) {
		return true, nil
	}
	if session.Stand(o.Super) == session.Present && s.patches.differs(ctx, k, o, desired) {
		return true, nil
	}
	if differs, err := s.own.Differs(ctx, k, o); differs || err != nil {
		return differs, err
	}
	if _, wanting, err := s.tokens.Compare(ctx, k, o); wanting || err != nil {
		return wanting, err
	}
	return s.status.differs(ctx, k, o), nil
}

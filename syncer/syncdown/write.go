package syncdown

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// writer creates and updates copies.
type writer struct {
	*session.Tenant
	*session.SuperObjects

	guard      *guard.Guard
	quota      *quota
	references *references
	tokens     tokenEnsurer
	patches    *patcher
}

// tokenEnsurer ensures the tokens that a copy mounts.
type tokenEnsurer interface {
	Ensure(ctx context.Context, k *kinds.Kind, o session.Objects) error
}

// create creates the copy with its tokens, if that exceeds no limit, or takes
// over the object of its name. It reports whether it created the copy; desired
// is then as the super cluster returned it.
func (s *writer) create(ctx context.Context, k *kinds.Kind, o session.Objects, desired client.Object) (bool, error) {
	release, err := s.quota.reserve(k, desired, nil)
	if err != nil {
		return false, err
	}
	if err := s.tokens.Ensure(ctx, k, o); err != nil {
		release()
		return false, err
	}
	err = s.guard.Create(ctx, k, desired)
	if err == nil {
		s.SuperRecent.Put(k.Name, k.CachedSuper(desired))
		return true, nil
	}
	release()
	if s.isTaken(ctx, k, o, err) {
		return false, s.takeOver(ctx, k, o, desired)
	}
	return false, pending.Classify(err)
}

// isTaken reports whether a copy could not be created because its name is
// taken. An apiserver allocates values that an object requests, such as an
// address, before it compares names. So the error for a copy that exists can be
// that the value is taken.
func (s *writer) isTaken(ctx context.Context, k *kinds.Kind, o session.Objects, err error) bool {
	if !apierrors.IsInvalid(err) {
		return apierrors.IsAlreadyExists(err)
	}
	found, err := s.LiveCopy(ctx, k, o.SuperKey)
	return err == nil && found != nil
}

// errVanished is why an object that had the name of a copy was not taken over.
// The request is retried.
var errVanished = errors.New("the object of this name in the super cluster is gone by now")

// takeOver handles an object that has the name of a copy and is not in the
// cache. It can be the copy, created just now or without its labels; an object
// that the super cluster created, which is adopted if the kind allows it; or a
// foreign object.
func (s *writer) takeOver(ctx context.Context, k *kinds.Kind, o session.Objects, desired client.Object) error {
	found, err := s.LiveCopy(ctx, k, o.SuperKey)
	if err != nil {
		return err
	}
	if found == nil {
		return errVanished
	}
	switch origin := translate.OriginOf(found); {
	case !isForeign(s.Lane(), origin, o.Tenant):
		s.SuperRecent.Put(k.Name, k.CachedSuper(found))
		if !session.IsCopyOf(origin, o.Tenant) {
			return nil
		}
	case origin.Cluster != "" || !k.Down.Adopt(found):
		return pending.Reject(guard.ErrForeign)
	}
	_, err = s.patches.patch(ctx, k, found, desired)
	return err
}

// update updates the copy where it differs, if it refers only to copies of the
// tenant and exceeds no limit, and returns it as it is then.
func (s *writer) update(ctx context.Context, k *kinds.Kind, o session.Objects, desired client.Object) (client.Object, error) {
	if !s.patches.differs(ctx, k, o, desired) {
		return o.Super, nil
	}
	if _, err := s.references.resolve(ctx, k, o.Tenant); err != nil {
		return o.Super, err
	}
	if len(k.Down.Parts) == 0 {
		return s.patches.patchAll(ctx, k, o, desired)
	}
	release, err := s.quota.reserve(k, session.MergedSuper(k, o.Super, desired), o.Super)
	if err != nil {
		return o.Super, err
	}
	changed, err := s.patches.patchAll(ctx, k, o, desired)
	if err != nil {
		release()
	}
	return changed, err
}

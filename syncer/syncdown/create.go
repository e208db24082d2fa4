package syncdown

import (
	"cmp"
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

// create creates the copy, after all that it needs.
func (s *Syncer) create(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	var err error
	if o.Tenant, err = s.tenantContents(ctx, k, o); err != nil || o.Tenant == nil {
		return err
	}
	if err := s.admit(ctx, k, o); err != nil {
		return err
	}
	missing, err := s.prepare(ctx, k, o.Tenant)
	if err != nil {
		return err
	}
	if missing != "" {
		return &pending.BlockedError{On: missing}
	}
	desired, err := s.desired(ctx, k, o)
	if err != nil {
		return err
	}
	if err := s.createCopy(ctx, k, o, desired); err != nil {
		return err
	}
	if !k.Down.OnDemand {
		s.Wake(k, o.Tenant)
	}
	return cmp.Or(s.Own.Furnish(ctx, k, o), s.omitted(ctx, k, o))
}

// createCopy creates the copy with its tokens, if there is room for it, or takes over the object that has its name.
func (s *Syncer) createCopy(ctx context.Context, k *kinds.Kind, o session.Objects, desired client.Object) error {
	release, err := s.reserve(k, desired, nil)
	if err != nil {
		return err
	}
	if err := s.Tokens.Ensure(ctx, k, o); err != nil {
		release()
		return err
	}
	err = s.Guard.Create(ctx, k, desired)
	if err == nil {
		s.createdCopy(k, o, desired)
		return nil
	}
	release()
	if s.isTaken(ctx, k, o, err) {
		return s.takeOver(ctx, k, o, desired)
	}
	return pending.Classify(err)
}

// reserve rejects a new or changed copy that would exceed a limit of the tenant, as [limits.Usage] does.
func (s *Syncer) reserve(k *kinds.Kind, copied, was client.Object) (release func(), err error) {
	return s.Usage.Reserve(s.Lane(), k, copied, was, s.Identity().Policy.Limits, s.Limits)
}

// omitted rejects the part of a tenant's object that its copy does not have.
func (s *Syncer) omitted(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if err := k.Down.Omitted(s.view.In(ctx, o.Key.Namespace), o.Tenant); err != nil {
		return pending.Reject(err)
	}
	return nil
}

// isTaken says whether a copy could not be made because its name is taken. An apiserver allocates what a copy asks for, such as an address,
// before it looks at the name; so a copy that is there already can look like one that asks for what another one has.
func (s *Syncer) isTaken(ctx context.Context, k *kinds.Kind, o session.Objects, err error) bool {
	if !apierrors.IsInvalid(err) {
		return apierrors.IsAlreadyExists(err)
	}
	found, err := s.LiveCopy(ctx, k, o.SuperKey)
	return err == nil && found != nil
}

// admit says why no copy may be made of a tenant's object.
func (s *Syncer) admit(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if k.Down.Reserved(o.Key.Name) {
		return pending.Reject(errReservedName)
	}
	if k.Down.Admit == nil {
		return nil
	}
	if err := k.Down.Admit(s.view.In(ctx, o.Key.Namespace), o.Tenant); err != nil {
		return pending.Reject(err)
	}
	return nil
}

// prepare ensures the namespace of an object and what it refers to, and returns what is required and missing; empty for nothing.
func (s *Syncer) prepare(ctx context.Context, k *kinds.Kind, obj client.Object) (missing string, err error) {
	if obj.GetNamespace() == "" {
		return "", nil
	}
	ready, err := s.ensure(ctx, session.NamespaceKind, client.ObjectKey{Name: obj.GetNamespace()})
	if err != nil {
		return "", err
	}
	if !ready {
		return session.NamespaceKind + " " + obj.GetNamespace(), nil
	}
	if err := s.Own.Ensure(ctx, obj.GetNamespace()); err != nil {
		return "", err
	}
	return s.resolve(ctx, k, obj)
}

// desired is the copy that the super cluster should hold.
func (s *Syncer) desired(ctx context.Context, k *kinds.Kind, o session.Objects) (client.Object, error) {
	v := s.view.In(ctx, o.Key.Namespace)
	desired, err := k.Down.Desired(v, o.Tenant)
	if err != nil {
		return nil, pending.Reject(err)
	}
	meta := v.Tenant.Down(k.Name, o.Tenant, o.SuperKey)
	translate.Merge(desired, meta)
	desired.SetName(meta.Name)
	desired.SetNamespace(meta.Namespace)
	if !s.patches.Has(k.Name) {
		return desired, nil
	}
	return desired, s.patch(ctx, k, desired, o.Tenant)
}

// patch rewrites what the admin has rewritten of a copy.
func (s *Syncer) patch(ctx context.Context, k *kinds.Kind, desired, tenant client.Object) error {
	err := s.patches.Apply(ctx, k.Name, desired, tenant, s.Identity())
	switch {
	case err == nil:
		translate.Claim(desired)
		return nil
	case ctx.Err() != nil:
		return err
	}
	return pending.Reject(err)
}

// errVanished says that what kept a copy from being made went meanwhile. It is tried again.
var errVanished = errors.New("the object of this name in the super cluster is gone by now")

// takeOver looks at the object that has the name of a copy and that the cache does not show. It may be our own, just made or
// robbed of its labels; one that the super cluster made by itself, which is adopted if the kind allows; or somebody else's.
func (s *Syncer) takeOver(ctx context.Context, k *kinds.Kind, o session.Objects, desired client.Object) error {
	found, err := s.LiveCopy(ctx, k, o.SuperKey)
	if err != nil {
		return err
	}
	if found == nil {
		return errVanished
	}
	switch origin := translate.OriginOf(found); {
	case !s.foreign(origin, o.Tenant):
		s.SuperRecent.Put(k.Name, k.CachedSuper(found))
		if !session.IsCopyOf(origin, o.Tenant) {
			return nil
		}
	case origin.Cluster != "" || !k.Down.Adopt(found):
		return pending.Reject(guard.ErrForeign)
	}
	_, err = s.patchSuper(ctx, k, found, desired)
	return err
}

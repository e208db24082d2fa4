// Package syncdown syncs the objects that a tenant declares: their spec down to copies in the super cluster, their status up from these.
package syncdown

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/limits"
	"github.com/virtualcluster/virtualcluster/syncer/own"
	"github.com/virtualcluster/virtualcluster/syncer/patch"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/tokens"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/views"
)

// Syncer syncs the objects of one tenant that the tenant declares.
type Syncer struct {
	*session.Session
	Options
	view    *views.Viewer
	patches *patch.Set
	// agreements are the objects whose contents were compared and are in no cache.
	agreements agreements
}

// Options are what a downSyncer needs beside the session.
type Options struct {
	// Nodes makes sure of the virtual nodes that objects are bound to.
	Nodes nodeEnsurer
	// Removals tells which copies may be removed.
	Removals removalGate
	// Tokens and own are the tenant's.
	Tokens *tokens.Issuer
	Own    *own.Syncer
	// Usage counts the copies of all tenants, which limits bound unless the tenant's policy says otherwise.
	Usage  *limits.Usage
	Limits limits.Limits
}

// NewSyncer makes what syncs down the objects of a tenant.
func NewSyncer(s *session.Session, view *views.Viewer, opts Options) *Syncer {
	return &Syncer{Session: s, Options: opts, view: view, patches: patch.Compile(s.Identity().Sync.Patches)}
}

// removalGate tells what a tenant has deleted from what only seems to be missing.
type removalGate interface {
	// AllowRemoval returns why a copy may not be removed for which the tenant has no object, or another one.
	AllowRemoval(ctx context.Context, k *kinds.Kind, o session.Objects) error
	// AllowRelease returns why a copy may not be removed to which nothing of the tenant's refers any more.
	AllowRelease(ctx context.Context) error
	// WasForced reports whether an object was seen to be deleted without any time to end.
	WasForced(uid types.UID) bool
}

// nodeEnsurer makes sure that a tenant has a virtual node.
type nodeEnsurer interface {
	EnsureNode(ctx context.Context, name string) error
}

// Sync brings one object of a kind that flows down closer to where it should be.
func (s *Syncer) Sync(ctx context.Context, k *kinds.Kind, key client.ObjectKey) error {
	defer s.Locks.Lock(k.Name, key)()
	o, err := s.read(ctx, k, key)
	if err != nil {
		return err
	}
	p, err := s.judge(ctx, k, o)
	if err != nil {
		return err
	}
	do := decide(p)
	if k.ByMetadata() && do != update {
		s.agreements.forget(k, key)
	}
	switch do {
	case create:
		return s.create(ctx, k, o)
	case update:
		return s.updateBoth(ctx, k, o)
	case remove:
		return s.retract(ctx, k, o, p)
	case retire:
		return guard.DeleteObject(ctx, s.Client, o.Tenant, k.Down.Mirror.GracePeriodSeconds(o.Super))
	case finish:
		return s.finish(ctx, k, o)
	case conflict:
		return pending.Reject(guard.ErrForeign)
	case nothing:
		return cmp.Or(s.Tokens.Drop(ctx, k, o), awaitDeletion(p, o))
	}
	return nil
}

// awaitDeletion returns an error for an object whose copy can be created when
// the previous one has been deleted.
func awaitDeletion(p pair, o session.Objects) error {
	if p.tenant != session.Present || !p.wanted || p.foreign || p.super != session.Deleting {
		return nil
	}
	return &pending.WaitingError{
		On: "the deletion of the previous copy in the super cluster", Until: o.Super.GetDeletionTimestamp().Time,
	}
}

// read reads both sides from the caches.
func (s *Syncer) read(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (session.Objects, error) {
	identity := s.IdentityVersion()
	o := session.Objects{Key: key, SuperKey: k.Down.SuperKey(*identity, key), Identity: identity}
	var err error
	if o.Tenant, err = s.TenantObject(ctx, k, key); err != nil {
		return o, err
	}
	o.Super, err = s.SuperObject(ctx, k, o.SuperKey)
	return o, err
}

// judge sees in the objects what the decision depends on.
func (s *Syncer) judge(ctx context.Context, k *kinds.Kind, o session.Objects) (pair, error) {
	p := pair{tenant: session.Stand(o.Tenant), super: session.Stand(o.Super), mirrored: k.Down.Mirror != nil}
	if o.Super != nil {
		origin := translate.OriginOf(o.Super)
		p.same = session.IsCopyOf(origin, o.Tenant)
		p.foreign = s.foreign(origin, o.Tenant)
	}
	p.hurried = p.mirrored && s.hurried(k.Down.Mirror, o)
	if o.Tenant == nil {
		return p, nil
	}
	p.started = p.mirrored && k.Down.Mirror.Started(o.Tenant)
	var err error
	p.wanted, err = s.wanted(ctx, k, o.Tenant)
	return p, err
}

// hurried says whether a copy is being deleted and has more time for it than the tenant gives it.
func (s *Syncer) hurried(m *kinds.Mirror[client.Object], o session.Objects) bool {
	if session.Stand(o.Super) != session.Deleting {
		return false
	}
	wanted, given := s.timeToEnd(m, o), m.GracePeriodSeconds(o.Super)
	return wanted != nil && given != nil && *wanted < *given
}

// timeToEnd is the grace period in seconds that the tenant gives a copy, within what its policy allows; nil if it gives none. An
// object that was deleted by force leaves its copy no time, since its name may be used again.
func (s *Syncer) timeToEnd(m *kinds.Mirror[client.Object], o session.Objects) *int64 {
	of := translate.OriginOf(o.Super).UID
	switch {
	case o.Tenant != nil && o.Tenant.GetUID() == of:
		return s.Identity().GracePeriod(m.GracePeriodSeconds(o.Tenant))
	case s.Removals.WasForced(of):
		return new(int64(0))
	}
	return nil
}

// foreign says whether an object of the super cluster, where a copy of this tenant's object should be, is not the tenant's. One that
// lost the note of whose it is can still be told by the UID.
func (s *Syncer) foreign(origin translate.Origin, tenant client.Object) bool {
	return origin.Cluster != s.Identity().Key && (origin.Cluster != "" || !session.IsCopyOf(origin, tenant))
}

// wanted says whether a tenant's object belongs in the super cluster.
func (s *Syncer) wanted(ctx context.Context, k *kinds.Kind, obj client.Object) (bool, error) {
	mode := s.Identity().Mode(k.Name)
	if mode == tenancyv1alpha1.SyncOff || k.Down.Skip(s.view.In(ctx, obj.GetNamespace()), obj) {
		return false, nil
	}
	if !k.Down.OnDemand || mode == tenancyv1alpha1.SyncAll {
		return true, nil
	}
	return s.Referred(ctx, k.Name, client.ObjectKeyFromObject(obj))
}

// Differs says whether a reconcile of an object would write anything.
func (s *Syncer) Differs(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (bool, error) {
	o, err := s.read(ctx, k, key)
	if err != nil {
		return false, err
	}
	p, err := s.judge(ctx, k, o)
	if err != nil {
		return false, err
	}
	switch decide(p) {
	case nothing:
		left, err := s.Tokens.Left(ctx, k, o)
		return left != nil, err
	case update:
		if k.ByMetadata() {
			return s.changedUnseen(k, o), nil
		}
		return s.outdated(ctx, k, o)
	case create, remove, retire, finish, conflict:
	}
	return true, nil
}

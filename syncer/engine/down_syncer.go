package engine

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/limits"
	"github.com/virtualcluster/virtualcluster/syncer/patch"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// downSyncer syncs the objects of one tenant that the tenant declares.
type downSyncer struct {
	*session.Session
	downOptions
	view    *viewer
	patches *patch.Set
	// agreements are the objects whose contents were compared and are in no cache.
	agreements agreements
}

// downOptions are what a downSyncer needs beside the session.
type downOptions struct {
	// nodes makes sure of the virtual nodes that objects are bound to.
	nodes nodeEnsurer
	// tokens, own and doubts are the tenant's.
	tokens *tokenIssuer
	own    *ownSyncer
	doubts *doubts
	// usage counts the copies of all tenants, which limits bound unless the tenant's policy says otherwise.
	usage  *limits.Usage
	limits limits.Limits
}

// newDownSyncer makes what syncs down the objects of a tenant.
func newDownSyncer(s *session.Session, view *viewer, opts downOptions) *downSyncer {
	return &downSyncer{Session: s, downOptions: opts, view: view, patches: patch.Compile(s.Identity().Sync.Patches)}
}

// nodeEnsurer makes sure that a tenant has a virtual node.
type nodeEnsurer interface {
	ensureNode(ctx context.Context, name string) error
}

// syncDown brings one object of a kind that flows down closer to where it should be.
func (s *downSyncer) syncDown(ctx context.Context, k *kinds.Kind, key client.ObjectKey) error {
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
		return s.tokens.dropTokens(ctx, k, o)
	}
	return nil
}

// read reads both sides from the caches.
func (s *downSyncer) read(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (session.Objects, error) {
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
func (s *downSyncer) judge(ctx context.Context, k *kinds.Kind, o session.Objects) (pair, error) {
	p := pair{tenant: session.Stand(o.Tenant), super: session.Stand(o.Super), mirrored: k.Down.Mirror != nil}
	if o.Super != nil {
		origin := translate.OriginOf(o.Super)
		p.same = of(origin, o.Tenant)
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
func (s *downSyncer) hurried(m *kinds.Mirror[client.Object], o session.Objects) bool {
	if session.Stand(o.Super) != session.Deleting {
		return false
	}
	wanted, given := s.timeToEnd(m, o), m.GracePeriodSeconds(o.Super)
	return wanted != nil && given != nil && *wanted < *given
}

// timeToEnd is the grace period in seconds that the tenant gives a copy, within what its policy allows; nil if it gives none. An
// object that was deleted by force leaves its copy no time, since its name may be used again.
func (s *downSyncer) timeToEnd(m *kinds.Mirror[client.Object], o session.Objects) *int64 {
	of := translate.OriginOf(o.Super).UID
	switch {
	case o.Tenant != nil && o.Tenant.GetUID() == of:
		return s.Identity().GracePeriod(m.GracePeriodSeconds(o.Tenant))
	case s.doubts.forced.Has(of, time.Now()):
		return new(int64(0))
	}
	return nil
}

// foreign says whether an object of the super cluster, where a copy of this tenant's object should be, is not the tenant's. One that
// lost the note of whose it is can still be told by the UID.
func (s *downSyncer) foreign(origin translate.Origin, tenant client.Object) bool {
	return origin.Cluster != s.Identity().Key && (origin.Cluster != "" || !of(origin, tenant))
}

// wanted says whether a tenant's object belongs in the super cluster.
func (s *downSyncer) wanted(ctx context.Context, k *kinds.Kind, obj client.Object) (bool, error) {
	mode := s.Identity().Mode(k.Name)
	if mode == tenancyv1alpha1.SyncOff || k.Down.Skip(s.view.in(ctx, obj.GetNamespace()), obj) {
		return false, nil
	}
	if !k.Down.OnDemand || mode == tenancyv1alpha1.SyncAll {
		return true, nil
	}
	return s.Referred(ctx, k.Name, client.ObjectKeyFromObject(obj))
}

// differs says whether a reconcile of an object would write anything.
func (s *downSyncer) differs(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (bool, error) {
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
		left, err := s.tokens.leftTokens(ctx, k, o)
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

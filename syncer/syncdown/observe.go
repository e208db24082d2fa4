package syncdown

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// observer reads both sides of an object and describes the difference.
type observer struct {
	*session.Tenant
	*session.TenantObjects
	*session.SuperObjects

	referrers referrers
	grace     *gracePeriods
	view      viewer
}

// referrers are the objects that refer to others.
type referrers interface {
	// Referred reports whether an object of the tenant refers to this one.
	Referred(ctx context.Context, kind string, key client.ObjectKey) (bool, error)
}

// read reads both sides from the caches.
func (s *observer) read(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (session.Objects, error) {
	identity := s.IdentityVersion()
	o := session.Objects{Key: key, SuperKey: k.Down.SuperKey(*identity, key), Identity: identity}
	var err error
	if o.Tenant, err = s.TenantObject(ctx, k, key); err != nil {
		return o, err
	}
	o.Super, err = s.SuperObject(ctx, k, o.SuperKey)
	return o, err
}

// observe reads both sides, and returns them with what a decision about them
// depends on.
func (s *observer) observe(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (session.Objects, observation, error) {
	o, err := s.read(ctx, k, key)
	if err != nil {
		return o, observation{}, err
	}
	p := observation{tenant: session.Stand(o.Tenant), super: session.Stand(o.Super), mirrored: k.Down.Mirror != nil}
	if o.Super != nil {
		origin := translate.OriginOf(o.Super)
		p.same = session.IsCopyOf(origin, o.Tenant)
		p.foreign = isForeign(s.Lane(), origin, o.Tenant)
	}
	p.shortened = p.mirrored && s.grace.shortened(k.Down.Mirror, o)
	if o.Tenant == nil {
		return o, p, nil
	}
	p.started = p.mirrored && k.Down.Mirror.Started(o.Tenant)
	p.finalized = p.mirrored && isFinalized(k.Down.Mirror, o.Tenant)
	p.wanted, err = s.wanted(ctx, k, o.Tenant)
	return o, p, err
}

// isForeign reports whether an object at the key of a copy does not belong to
// the tenant with this cluster key. A copy without the annotation of its tenant
// is identified by the UID.
func isForeign(cluster string, origin translate.Origin, tenant client.Object) bool {
	return origin.Cluster != cluster && (origin.Cluster != "" || !session.IsCopyOf(origin, tenant))
}

// isFinalized reports whether an object has been deleted without a grace period,
// and only its finalizers keep it. To delete it again would change nothing.
func isFinalized(m *kinds.Mirror[client.Object], tenant client.Object) bool {
	grace := m.GracePeriodSeconds(tenant)
	return session.Stand(tenant) == session.Deleting && len(tenant.GetFinalizers()) > 0 && grace != nil && *grace == 0
}

// wanted reports whether a tenant's object should have a copy.
func (s *observer) wanted(ctx context.Context, k *kinds.Kind, obj client.Object) (bool, error) {
	mode := s.Identity().Mode(k.Name)
	if mode == tenancyv1alpha1.SyncOff || k.Down.Skip(s.view.In(ctx, obj.GetNamespace()), obj) {
		return false, nil
	}
	if !k.Down.OnDemand || mode == tenancyv1alpha1.SyncAll {
		return true, nil
	}
	return s.referrers.Referred(ctx, k.Name, client.ObjectKeyFromObject(obj))
}

package session

import (
	"context"
	"iter"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// References are those between the objects of a tenant.
type References struct {
	tenant  *Tenant
	kinds   *Kinds
	objects *TenantObjects
}

// NewReferences returns the references of a tenant's objects.
func NewReferences(tenant *Tenant, synced *Kinds, objects *TenantObjects) *References {
	return &References{tenant: tenant, kinds: synced, objects: objects}
}

// Referred reports whether an object of the tenant refers to this one.
func (s *References) Referred(ctx context.Context, kind string, key client.ObjectKey) (bool, error) {
	for k := range s.referrers() {
		to := caches.ReferenceValue(key.Namespace, kind, key.Name)
		if found, err := s.objects.Cache.Has(ctx, k, caches.IndexReferences, to); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// eachReferrer calls f with each of the tenant's objects that refers to this
// one, if its kind is synced down.
func (s *References) eachReferrer(ctx context.Context, name string, key client.ObjectKey, f func(*kinds.Kind, client.ObjectKey)) error {
	for k := range s.referrers() {
		to := caches.ReferenceValue(key.Namespace, name, key.Name)
		err := s.objects.Cache.EachKeyBy(ctx, k, caches.IndexReferences, to, func(key client.ObjectKey) {
			f(k, key)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// referrers are the kinds that are synced down and whose objects refer to
// others.
func (s *References) referrers() iter.Seq[*kinds.Kind] {
	return func(yield func(*kinds.Kind) bool) {
		for k := range s.kinds.SyncedKinds() {
			if k.Down == nil || k.Down.References == nil || s.tenant.Identity().Mode(k.Name) == tenancyv1alpha1.SyncOff {
				continue
			}
			if !yield(k) {
				return
			}
		}
	}
}

// Package views creates the views that give the hooks of kinds access to
// related objects.
package views

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Viewer creates the views of a tenant.
type Viewer struct {
	*session.SuperCluster
	*session.Tenant
	*session.Kinds
	*session.TenantObjects
	*session.SuperObjects

	// Network is View.Network; nil if tenants have no networks.
	Network func(named string) kinds.Network

	digests digests
}

// NewViewer returns the viewer of a tenant.
func NewViewer(s *session.Session) *Viewer {
	return &Viewer{
		SuperCluster: s.SuperCluster, Tenant: s.Tenant, Kinds: s.Kinds,
		TenantObjects: s.TenantObjects, SuperObjects: s.SuperObjects,
	}
}

// In returns the view of a namespace of the tenant.
func (s *Viewer) In(ctx context.Context, namespace string) kinds.View {
	return kinds.View{
		Tenant: s.Identity(), Namespace: namespace,
		Lookup: s.lookup(ctx), Digest: s.digestsIn(ctx, namespace),
		Copy: s.copyIn(ctx, namespace), Rivals: s.rivals(ctx), Offers: s.offers(ctx), Offered: s.offered(ctx), RunsAt: s.runsAt(ctx),
		Network: s.Network,
	}
}

// offers returns the function View.Offers.
func (s *Viewer) offers(ctx context.Context) func(kind, name string) bool {
	return func(kind, name string) bool {
		k := s.Kind(kind)
		if k == nil || k.Up == nil || s.Identity().Mode(kind) == tenancyv1alpha1.SyncOff {
			return false
		}
		super, err := s.SuperObject(ctx, k, client.ObjectKey{Name: name})
		return err == nil && super != nil && s.Identity().Offers(kind, super)
	}
}

// offered returns the function View.Offered.
func (s *Viewer) offered(ctx context.Context) func(kind string) []client.ObjectKey {
	return func(kind string) []client.ObjectKey {
		k := s.Standing.Kind(kind)
		if k == nil || k.Up == nil || !k.Up.Offered || !s.CacheOf(k).Synced(k) {
			return nil
		}
		var keys []client.ObjectKey
		// Reading a synced cache does not fail; if it did, the patrol would
		// find the difference.
		_ = s.CacheOf(k).EachKey(ctx, k, func(key client.ObjectKey) {
			if obj, err := s.CacheOf(k).Get(ctx, k, key); err == nil && obj != nil && s.Identity().Offers(kind, obj) {
				keys = append(keys, key)
			}
		})
		slices.SortFunc(keys, func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
		return keys
	}
}

// copyIn returns the function View.Copy for a namespace of the tenant.
func (s *Viewer) copyIn(ctx context.Context, namespace string) func(kind, name string) client.Object {
	return func(kind, name string) client.Object {
		k := s.Builtin[kind]
		if k == nil {
			k = s.Kind(kind) // a custom resource
		}
		if k == nil {
			return nil
		}
		found, err := s.SuperObject(ctx, k, s.Identity().SuperKey(client.ObjectKey{Namespace: namespace, Name: name}))
		if err != nil || found == nil || translate.OriginOf(found).Cluster != s.Identity().Key {
			return nil
		}
		return found
	}
}

// rivals returns the function View.Rivals.
func (s *Viewer) rivals(ctx context.Context) func(claim string) ([]client.Object, error) {
	return func(claim string) ([]client.Object, error) {
		claimants, err := s.Claimants()
		if err != nil {
			return nil, err
		}
		var found []client.Object
		for _, k := range claimants {
			found = append(found, s.rivalsOf(ctx, k, claim)...)
		}
		return found, nil
	}
}

// rivalsOf returns the objects of one kind that have a claim and are not in the
// tenant's namespaces.
func (s *Viewer) rivalsOf(ctx context.Context, k *kinds.Kind, claim string) []client.Object {
	var keys []client.ObjectKey
	// Reading a synced cache does not fail; if it did, the patrol would
	// find the difference.
	_ = s.CacheOf(k).EachKeyBy(ctx, k, caches.IndexClaims, claim, func(key client.ObjectKey) { keys = append(keys, key) })
	var found []client.Object
	for _, key := range keys {
		if s.ownsNamespace(ctx, key.Namespace) {
			continue
		}
		if obj, err := s.CacheOf(k).Get(ctx, k, key); err == nil && obj != nil {
			found = append(found, obj)
		}
	}
	return found
}

// ownsNamespace reports whether a namespace of the super cluster is known to
// belong to the tenant.
func (s *Viewer) ownsNamespace(ctx context.Context, name string) bool {
	ns, err := s.SuperNamespace(ctx, name)
	return err == nil && ns != nil && ns.Annotations[names.VCUID] == string(s.Identity().UID)
}

// lookup returns the function View.Lookup.
func (s *Viewer) lookup(ctx context.Context) func(schema.GroupKind, client.ObjectKey, types.UID) client.Object {
	return func(gk schema.GroupKind, superKey client.ObjectKey, uid types.UID) client.Object {
		k := s.KindOf(gk)
		if k == nil || k.Down == nil {
			return nil
		}
		super, err := s.SuperObject(ctx, k, superKey)
		if err != nil || super == nil || (uid != "" && uid != super.GetUID()) {
			return nil
		}
		tenant, err := s.TenantObject(ctx, k, k.Down.TenantKey(super))
		if err != nil || tenant == nil || tenant.GetUID() != translate.OriginOf(super).UID {
			return nil
		}
		return tenant
	}
}

// runsAt returns the function View.RunsAt.
func (s *Viewer) runsAt(ctx context.Context) func(address string) bool {
	return func(address string) bool {
		for _, k := range s.Builtin {
			if k.Down == nil || k.Down.Mirror == nil {
				continue
			}
			if found, err := s.CacheOf(k).Has(ctx, k, caches.IndexAddresses, caches.AddressValue(s.Lane(), address)); found && err == nil {
				return true
			}
		}
		return false
	}
}

// digestsIn returns a function that returns the digest of the tenant's copies
// of a kind in one of its namespaces; nil for a kind without digests.
func (s *Viewer) digestsIn(ctx context.Context, namespace string) func(kind string) any {
	return func(name string) any {
		k := s.Builtin[name]
		if k == nil || k.Down == nil || k.Down.Digest == nil {
			return nil
		}
		return s.digests.get(digestKey{name, namespace}, func() any {
			var copies []client.Object
			// Reading a synced cache does not fail; if it did, the next event
			// of a copy, or the patrol, would compute the digest again.
			_ = s.CacheOf(k).EachBy(ctx, k, toolscache.NamespaceIndex, s.Identity().SuperNamespace(namespace), func(obj client.Object) {
				if session.IsCopy(obj) {
					copies = append(copies, obj)
				}
			})
			return k.Down.Digest(copies)
		})
	}
}

// Forget deletes the digest of a kind in a namespace of the tenant because a
// copy has changed.
func (s *Viewer) Forget(kind, namespace string) { s.digests.forget(digestKey{kind, namespace}) }

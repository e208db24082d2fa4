package deletion

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// maxAbandoned is the number of running pods that may have lost their tenant's
// objects without an observed deletion, like those that are force-deleted while
// the syncer is not running.
const maxAbandoned = 5

// RetryInDoubt is how long a tenant has to be without pods before that counts:
// the events of deletions arrive in this time.
const RetryInDoubt = 5 * time.Second

// Doubts distinguishes objects that a tenant has deleted from objects that only
// seem to be missing.
type Doubts struct {
	*session.SuperCluster
	*session.Tenant
	*session.Kinds
	*session.TenantObjects

	// deleted are the tenant's objects whose deletion was observed.
	deleted *Deletions
	// forced are those of them that were deleted without a grace period.
	forced *Deletions
	// identities verifies that the tenant is still the one that was engaged,
	// absences that missing objects were deleted.
	identities, absences *Verifier
	// emptySince is when the tenant was first observed without pods. It is
	// guarded by absences.
	emptySince time.Time
}

// NewDoubts returns the doubts about a tenant, before any observation.
func NewDoubts(s *session.Session) *Doubts {
	return &Doubts{
		SuperCluster: s.SuperCluster, Tenant: s.Tenant, Kinds: s.Kinds, TenantObjects: s.TenantObjects,
		deleted: NewDeletions(), forced: NewDeletions(),
		identities: NewVerifier(), absences: NewVerifier(),
	}
}

// AllowRemoval returns an error if a copy must not be deleted although the
// tenant has no object for it, another object, or none that refers to it. The
// loss of a tenant's data looks the same, and running pods must not be lost
// with it.
func (s *Doubts) AllowRemoval(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if err := s.identities.Verify(ctx, s.Cluster.Verify); err != nil {
		return err
	}
	if s.deleted.Has(translate.OriginOf(o.Super).UID, time.Now()) {
		return nil
	}
	if k.Name == session.NamespaceKind && o.Tenant == nil {
		if err := s.confirmEmptiness(ctx, o.Key.Name); err != nil {
			return err
		}
	}
	return s.absences.Verify(ctx, s.confirmAbsence)
}

// AllowRelease returns an error if a copy that no object of the tenant refers
// to must not be deleted.
func (s *Doubts) AllowRelease(ctx context.Context) error {
	return s.absences.Verify(ctx, s.confirmAbsence)
}

// confirmEmptiness checks a namespace that is missing in the tenant without an
// observed deletion. Deleting its copy would delete everything in it, and an
// apiserver only finalizes a namespace after its content: if the tenant still
// has pods there, the cache is inconsistent.
func (s *Doubts) confirmEmptiness(ctx context.Context, namespace string) error {
	for k := range s.SyncedKinds() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		populated, err := s.Cache.Has(ctx, k, toolscache.NamespaceIndex, namespace)
		if err != nil {
			return err
		}
		if populated {
			return pending.ErrInDoubt
		}
	}
	return nil
}

// confirmAbsence checks objects that are missing in the tenant without an
// observed deletion. They count as deleted unless the tenant has no pods at
// all, while more than maxAbandoned run in the super cluster. It is never
// called concurrently.
func (s *Doubts) confirmAbsence(ctx context.Context) error {
	for k := range s.SyncedKinds() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		abandoned, err := s.abandoned(ctx, k)
		if err != nil {
			return err
		}
		if abandoned > maxAbandoned {
			return s.emptied(abandoned)
		}
	}
	s.emptySince = time.Time{}
	return nil
}

// emptied returns an error for that many abandoned objects.
func (s *Doubts) emptied(abandoned int) error {
	now := time.Now()
	if s.emptySince.IsZero() {
		s.emptySince = now
	}
	if now.Sub(s.emptySince) < RetryInDoubt {
		return pending.ErrInDoubt
	}
	return s.Cluster.Emptied(abandoned)
}

// runs reports whether a copy is on a node and is neither completed nor being
// deleted.
func runs(m *kinds.Mirror[client.Object], super client.Object) bool {
	return m.Node(super) != "" && session.Stand(super) == session.Present && !m.Ended(super)
}

// abandoned returns the number of running copies of the tenant's mirrored
// objects, if they are more than maxAbandoned and the tenant's apiserver has no
// object of the kind; otherwise 0.
func (s *Doubts) abandoned(ctx context.Context, k *kinds.Kind) (int, error) {
	running, now := 0, time.Now()
	err := s.CacheOf(k).EachBy(ctx, k, caches.IndexCluster, s.Lane(), func(obj client.Object) {
		if runs(k.Down.Mirror, obj) && !s.deleted.Has(translate.OriginOf(obj).UID, now) {
			running++
		}
	})
	if err != nil || running <= maxAbandoned {
		return 0, err
	}
	list := k.List.DeepCopyObject().(client.ObjectList)
	if err := s.Cluster.GetAPIReader().List(ctx, list, client.Limit(1)); err != nil || meta.LenList(list) > 0 {
		return 0, err
	}
	return running, nil
}

// WasForced reports whether an object was deleted without a grace period.
func (s *Doubts) WasForced(uid types.UID) bool { return s.forced.Has(uid, time.Now()) }

// Witness records an observed deletion. Objects that are not deleted at once,
// especially pods and namespaces, have a deletion timestamp first; objects
// without one have to be confirmed.
func (s *Doubts) Witness(obj client.Object, missed bool) {
	if missed || session.Stand(obj) != session.Deleting {
		return
	}
	s.deleted.Add(obj.GetUID(), time.Now())
	if grace := obj.GetDeletionGracePeriodSeconds(); grace != nil && *grace == 0 {
		s.forced.Add(obj.GetUID(), time.Now())
	}
}

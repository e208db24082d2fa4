package deletion

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// aHandful is how many running pods may lose their tenant's objects without anybody seeing it, as those do that are deleted by
// force while the syncer is away.
const aHandful = 5

// RetryInDoubt is how long a tenant has to be seen without pods before that counts: deletions that were made are on their way then.
const RetryInDoubt = 5 * time.Second

// ErrInDoubt is why a copy is not removed yet. It is looked at again.
var ErrInDoubt = errors.New("what is missing in the tenant was not seen to be deleted, and may only seem to be missing")

// Doubts tell what a tenant has deleted from what only seems to be missing.
type Doubts struct {
	*session.Session
	// deleted are the tenant's objects whose deletion was seen.
	deleted Deletions
	// forced are those of them that had no time to end.
	forced Deletions
	// identities are questions about whether the tenant is still the one that was engaged, absences about whether what is
	// missing was deleted.
	identities, absences *Verifier
	// emptySince is when the tenant was first seen without pods, those of the absences' answers that are in doubt.
	emptySince time.Time
}

// NewDoubts makes the doubts about a tenant, of which nothing is known yet.
func NewDoubts(s *session.Session) *Doubts {
	return &Doubts{Session: s, identities: NewVerifier(), absences: NewVerifier()}
}

// AllowRemoval says whether a copy may be removed for which the tenant has no object, another one, or none that refers to it. It
// may not when the tenant's data is lost, which looks the same: what runs must not be lost with it.
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

// AllowRelease says whether a copy may be removed to which nothing of the tenant's refers any more.
func (s *Doubts) AllowRelease(ctx context.Context) error {
	return s.absences.Verify(ctx, s.confirmAbsence)
}

// confirmEmptiness is asked about a namespace that is missing in the tenant though no deletion was seen. All that is in its
// copy goes with the copy, and an apiserver lets a namespace go after what is in it: while the tenant still has pods there, one of
// the two is not the whole truth.
func (s *Doubts) confirmEmptiness(ctx context.Context, namespace string) error {
	for k := range s.Carried() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		populated, err := s.Cache.Has(ctx, k, toolscache.NamespaceIndex, namespace)
		if err != nil {
			return err
		}
		if populated {
			return ErrInDoubt
		}
	}
	return nil
}

// confirmAbsence is asked about objects that are missing in the tenant though no deletion was seen. They count as
// deleted unless the tenant has no pod at all any more, while more than a handful run in the super cluster. It is never called
// twice at the same time.
func (s *Doubts) confirmAbsence(ctx context.Context) error {
	for k := range s.Carried() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		abandoned, err := s.abandoned(ctx, k)
		if err != nil {
			return err
		}
		if abandoned > aHandful {
			return s.emptied(abandoned)
		}
	}
	s.emptySince = time.Time{}
	return nil
}

// emptied says what is to be done about so many abandoned objects.
func (s *Doubts) emptied(abandoned int) error {
	now := time.Now()
	if s.emptySince.IsZero() {
		s.emptySince = now
	}
	if now.Sub(s.emptySince) < RetryInDoubt {
		return ErrInDoubt
	}
	return s.Cluster.Emptied(abandoned)
}

// runs says whether a copy is on a node and has not ended, nor is about to.
func runs(m *kinds.Mirror[client.Object], super client.Object) bool {
	return m.Node(super) != "" && session.Stand(super) == session.Present && !m.Ended(super)
}

// abandoned counts the copies of the tenant's mirrored objects that run, if they are more than a handful and the tenant's
// apiserver has none of their kind.
func (s *Doubts) abandoned(ctx context.Context, k *kinds.Kind) (int, error) {
	running, now := 0, time.Now()
	err := s.CacheOf(k).EachBy(ctx, k, caches.IndexCluster, s.Lane(), func(obj client.Object) {
		if runs(k.Down.Mirror, obj) && !s.deleted.Has(translate.OriginOf(obj).UID, now) {
			running++
		}
	})
	if err != nil || running <= aHandful {
		return 0, err
	}
	list := k.List.DeepCopyObject().(client.ObjectList)
	if err := s.Cluster.GetAPIReader().List(ctx, list, client.Limit(1)); err != nil || meta.LenList(list) > 0 {
		return 0, err
	}
	return running, nil
}

// WasForced reports whether an object was seen to be deleted without any time to end.
func (s *Doubts) WasForced(uid types.UID) bool { return s.forced.Has(uid, time.Now()) }

// Witness notes an object whose deletion was seen. What the apiserver takes its time to delete, pods and namespaces above all,
// is marked before it goes; what goes without a mark is asked about.
func (s *Doubts) Witness(obj client.Object, missed bool) {
	if missed || session.Stand(obj) != session.Deleting {
		return
	}
	s.deleted.Add(obj.GetUID(), time.Now())
	if grace := obj.GetDeletionGracePeriodSeconds(); grace != nil && *grace == 0 {
		s.forced.Add(obj.GetUID(), time.Now())
	}
}

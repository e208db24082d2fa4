package patrol

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// Tenant compares both sides of one tenant's objects.
type Tenant struct {
	*session.Session

	up, down differ
	tokens   renewer
	metrics  *Metrics
	beat     beat
}

// renewer renews what expires.
type renewer interface {
	// EnqueueRenewals enqueues the objects whose tokens are to be renewed.
	EnqueueRenewals(ctx context.Context)
}

// NewTenant returns the patrol's part of a tenant. Up and down report the
// differences of kinds that are synced up and down.
func NewTenant(s *session.Session, up, down differ, tokens renewer, metrics *Metrics) *Tenant {
	return &Tenant{Session: s, up: up, down: down, tokens: tokens, metrics: metrics}
}

// round compares the tenant's objects within the budget. It also enqueues what
// no event leads to.
func (s *Tenant) round(ctx context.Context, budget time.Duration) Differences {
	s.TenantRecent.Sweep()
	s.SuperRecent.Sweep()
	found := s.Compare(ctx, budget)
	s.EnqueuePending(isUnscheduled, queue.PriorityNormal)
	s.tokens.EnqueueRenewals(ctx)
	return found
}

// isUnscheduled reports whether a pending object is retried only by an event,
// which may have been missed.
func isUnscheduled(e pending.Entry) bool {
	return e.Denied || e.State == pending.BlockedOn || e.State == pending.Waiting
}

// differ reports Differences between both sides of an object.
type differ interface {
	// Differs reports whether a reconcile of the object would write anything.
	Differs(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (bool, error)
}

// Differences are the keys of a tenant's objects that differ, by kind.
type Differences map[*kinds.Kind][]client.ObjectKey

// Compare compares both sides of all objects of one tenant, from where the last
// round ended, for no longer than the budget.
func (s *Tenant) Compare(ctx context.Context, budget time.Duration) Differences {
	began, found := time.Now(), Differences{}
	if s.beat.ended() {
		s.beat = beat{kinds: slices.Collect(s.SyncedKinds())}
	}
	for !s.beat.ended() {
		if ctx.Err() != nil || s.Ctx.Err() != nil || !s.Begun.Load() || !s.Cluster.Healthy() {
			s.beat = beat{}
			return nil
		}
		k, key, ok := s.beat.next(func(k *kinds.Kind) []client.ObjectKey { return s.listKeys(ctx, k) })
		if ok && s.Kind(k.Name) == k && s.suspect(ctx, k, key) {
			found[k] = append(found[k], key)
		}
		if time.Since(began) > budget && !s.beat.ended() {
			s.metrics.postponed.Inc()
			break
		}
	}
	return found
}

// listKeys returns the keys of the objects of a kind that the patrol compares.
func (s *Tenant) listKeys(ctx context.Context, k *kinds.Kind) []client.ObjectKey {
	if k.Up != nil && k.Up.Expires {
		return nil
	}
	keys, err := s.Keys(ctx, k)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot compare", "tenant", s.Lane(), "kind", k.Name)
		return nil
	}
	return keys.UnsortedList()
}

// enqueue enqueues the objects that still differ.
func (s *Tenant) enqueue(ctx context.Context, found Differences) {
	for k, keys := range found {
		for _, key := range keys {
			if !s.suspect(ctx, k, key) {
				continue
			}
			s.metrics.findings.WithLabelValues(k.Name).Inc()
			s.Enqueue(s.Request(k, key), queue.PriorityLow)
		}
	}
}

// Keys returns the tenant's keys of the objects of a kind on both sides.
func (s *Tenant) Keys(ctx context.Context, k *kinds.Kind) (sets.Set[client.ObjectKey], error) {
	keys := sets.New[client.ObjectKey]()
	if !s.Asleep(k) {
		err := s.Cache.EachKey(ctx, k, func(key client.ObjectKey) { keys.Insert(key) })
		if err != nil {
			return nil, err
		}
	}
	return keys, s.EachSuperKey(ctx, k, func(key client.ObjectKey) { keys.Insert(key) })
}

// suspect reports whether an object differs. Pending objects are retried
// anyway.
func (s *Tenant) suspect(ctx context.Context, k *kinds.Kind, key client.ObjectKey) bool {
	differs, err := s.compare(ctx, k, key)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot compare", "tenant", s.Lane(), "kind", k.Name, "object", key)
		return false
	}
	return differs && !s.Pending.Has(k.Name, key)
}

// compare reports whether a reconcile of an object would write anything.
func (s *Tenant) compare(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (bool, error) {
	if k.Up != nil {
		return s.up.Differs(ctx, k, key)
	}
	return s.down.Differs(ctx, k, key)
}

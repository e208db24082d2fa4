package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// settling is how long a difference has to last to be one that no event told of: what is being carried differs for a moment.
const settling = 2 * time.Second

// patrol compares both sides of everything at an interval, until ctx ends. What differs is enqueued and mended like anything
// else; where events do their work, nothing differs.
func (e *Engine) patrol(ctx context.Context) {
	for {
		// The rounds of several syncers come at different times.
		if !pause(ctx, wait.Jitter(e.interval, 0.2)) {
			return
		}
		began, suspects := time.Now(), map[*engagement]differences{}
		budget := budgetOf(e.interval, e.engaged())
		e.eachSession(func(s *engagement) {
			s.TenantRecent.Sweep()
			s.SuperRecent.Sweep()
			if found := s.compareAll(ctx, budget); len(found) > 0 {
				suspects[s] = found
			}
			s.EnqueuePending(isUnscheduled, queue.PriorityNormal)
			s.tokens.EnqueueRenewals(ctx)
		})
		e.metrics.observePatrol(began)
		if len(suspects) == 0 {
			continue
		}
		if !pause(ctx, settling) {
			return
		}
		for s, found := range suspects {
			s.mend(ctx, found)
		}
	}
}

// isUnscheduled reports whether a pending object is retried only by an event,
// which may have been missed.
func isUnscheduled(e pending.Entry) bool {
	return e.Denied || e.State == pending.BlockedOn || e.State == pending.Waiting
}

// pause waits, and says whether ctx is still there then.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// differences are the keys of a tenant's objects that differ, by kind.
type differences map[*kinds.Kind][]client.ObjectKey

// mend enqueues what still differs.
func (s *engagement) mend(ctx context.Context, found differences) {
	for k, keys := range found {
		for _, key := range keys {
			if !s.suspect(ctx, k, key) {
				continue
			}
			s.engine.metrics.patrolFindings.WithLabelValues(k.Name).Inc()
			s.Enqueue(s.Request(k, key), queue.PriorityLow)
		}
	}
}

// keys are the tenant's keys of the objects of a kind on both sides.
func (s *engagement) keys(ctx context.Context, k *kinds.Kind) (sets.Set[client.ObjectKey], error) {
	keys := sets.New[client.ObjectKey]()
	if !s.Asleep(k) {
		err := s.Cache.EachKey(ctx, k, func(key client.ObjectKey) { keys.Insert(key) })
		if err != nil {
			return nil, err
		}
	}
	return keys, s.EachSuperKey(ctx, k, func(key client.ObjectKey) { keys.Insert(key) })
}

// suspect reports whether an object differs. Pending objects are retried anyway.
func (s *engagement) suspect(ctx context.Context, k *kinds.Kind, key client.ObjectKey) bool {
	differs, err := s.compare(ctx, k, key)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot compare", "tenant", s.Lane(), "kind", k.Name, "object", key)
		return false
	}
	return differs && !s.Pending.Has(k.Name, key)
}

// compare reports whether a reconcile of an object would write anything.
func (s *engagement) compare(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (bool, error) {
	if k.Up != nil {
		return s.up.Differs(ctx, k, key)
	}
	return s.down.Differs(ctx, k, key)
}

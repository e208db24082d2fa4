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
	"github.com/virtualcluster/virtualcluster/syncer/wire"
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
		began, suspects := time.Now(), map[*session]differences{}
		budget := budgetOf(e.interval, e.engaged())
		e.eachSession(func(s *session) {
			s.tenantRecent.Sweep()
			s.superRecent.Sweep()
			if found := s.compareAll(ctx, budget); len(found) > 0 {
				suspects[s] = found
			}
			s.enqueueParked(s.held.All(), queue.PriorityNormal)
			s.enqueueRenewals(ctx)
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
func (s *session) mend(ctx context.Context, found differences) {
	for k, keys := range found {
		for _, key := range keys {
			if !s.suspect(ctx, k, key) {
				continue
			}
			s.metrics.patrolFindings.WithLabelValues(k.Name).Inc()
			s.enqueue(s.request(k, key), queue.PriorityLow)
		}
	}
}

// keys are the tenant's keys of the objects of a kind on both sides.
func (s *session) keys(ctx context.Context, k *kinds.Kind) (sets.Set[client.ObjectKey], error) {
	keys := sets.New[client.ObjectKey]()
	if !s.asleep(k) {
		err := s.cache.EachKey(ctx, k, func(key client.ObjectKey) { keys.Insert(key) })
		if err != nil {
			return nil, err
		}
	}
	return keys, s.eachSuperKey(ctx, k, func(key client.ObjectKey) { keys.Insert(key) })
}

// suspect reports whether an object differs. Those that are refused are tried again anyway.
func (s *session) suspect(ctx context.Context, k *kinds.Kind, key client.ObjectKey) bool {
	differs, err := s.differs(ctx, k, key)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot compare", "tenant", s.lane(), "kind", k.Name, "object", key)
		return false
	}
	return differs && !s.refusals.Has(k.Name, key) && !s.held.Has(k.Name, key)
}

// differs says whether a reconcile of an object would write anything.
func (s *session) differs(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (bool, error) {
	if k.Up != nil {
		return s.differsUp(ctx, k, key)
	}
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
		left, err := s.leftTokens(ctx, k, o)
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

// outdated says whether one of two sides that both exist does not hold what it should.
func (s *session) outdated(ctx context.Context, k *kinds.Kind, o objects) (bool, error) {
	desired, err := s.desired(ctx, k, o)
	if pending.IsRejection(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if k.Down.Replace(o.super, desired) {
		return true, nil
	}
	if stand(o.super) == present && s.copyDiffers(ctx, k, o, desired) {
		return true, nil
	}
	if unfurnished, err := s.unfurnished(ctx, k, o); unfurnished || err != nil {
		return unfurnished, err
	}
	if _, wanting, err := s.compareTokens(ctx, k, o); wanting || err != nil {
		return wanting, err
	}
	m := k.Down.Mirror
	if m != nil && m.Node(o.super) != "" && m.Node(o.tenant) == "" && stand(o.tenant) == present {
		return true, nil
	}
	if shown := s.shownBack(ctx, k, o.tenant, o.super); shown != o.tenant && !wire.Equal(shown, o.tenant) {
		return true, nil
	}
	if k.Down.Status == nil {
		return false, nil
	}
	shown := o.tenant.DeepCopyObject().(client.Object)
	k.Down.Status(s.view(ctx, o.key.Namespace), shown, o.super)
	return !k.Down.Same(shown, o.tenant), nil
}

// differsUp says whether the tenant does not hold what it should be shown.
func (s *session) differsUp(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (bool, error) {
	o, err := s.readUp(ctx, k, key)
	switch {
	case err != nil:
		return false, err
	case o.tenant == nil:
		return o.shown != nil, nil
	case o.shown == nil:
		return fromSuper(o.tenant) && stand(o.tenant) == present, nil
	case !fromSuper(o.tenant), k.Up.Replace(o.tenant, o.shown), mergedBack(k, s.view(ctx, ""), o) != nil:
		return true, nil
	}
	merged := mergedUp(k, o.tenant, o.shown)
	if k.Up.Status != nil {
		k.Up.Status(merged, o.shown)
	}
	return !wire.Equal(merged, o.tenant), nil
}

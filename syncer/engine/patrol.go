package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// patrol compares both sides of everything at an interval, until ctx ends. What differs is enqueued and mended like anything
// else; where events do their work, nothing differs.
func (e *Engine) patrol(ctx context.Context) {
	for {
		// The tenants' turns come at different times in every round and in every syncer.
		pause := e.interval + time.Duration((rand.Float64()-0.5)*0.2*float64(e.interval))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		e.eachSession(func(s *session) { s.patrol(ctx) })
	}
}

// patrol compares both sides of everything of one tenant.
func (s *session) patrol(ctx context.Context) {
	if !s.begun.Load() || !s.cluster.Healthy() {
		return
	}
	for k := range s.carried() {
		if ctx.Err() != nil || s.ctx.Err() != nil {
			return
		}
		if k.up != nil && k.up.expires {
			continue
		}
		if err := s.patrolKind(ctx, k); err != nil {
			log.FromContext(ctx).Error(err, "Cannot compare", "tenant", s.lane(), "kind", k.name)
		}
	}
}

// patrolKind enqueues the objects of a kind that differ.
func (s *session) patrolKind(ctx context.Context, k *kind) error {
	keys := sets.New[client.ObjectKey]()
	err := eachObject(ctx, s.cluster.GetCache(), k, func(obj client.Object) { keys.Insert(client.ObjectKeyFromObject(obj)) })
	if err != nil {
		return err
	}
	if err := s.eachSuperKey(ctx, k, func(key client.ObjectKey) { keys.Insert(key) }); err != nil {
		return err
	}
	for key := range keys {
		differs, err := s.differs(ctx, k, key)
		if err != nil {
			return err
		}
		if differs && !s.refusals.waits(k.name, key) {
			s.patrolFindings.WithLabelValues(k.name).Inc()
			s.enqueue(s.request(k, key), priorityLow)
		}
	}
	return nil
}

// differs says whether a reconcile of an object would write anything.
func (s *session) differs(ctx context.Context, k *kind, key client.ObjectKey) (bool, error) {
	if k.up != nil {
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
		return false, nil
	case update:
		return s.outdated(ctx, k, o)
	case create, remove, retire, finish, conflict:
	}
	return true, nil
}

// outdated says whether one of two sides that both exist does not hold what it should.
func (s *session) outdated(ctx context.Context, k *kind, o objects) (bool, error) {
	desired, err := s.desired(ctx, k, o)
	if errors.As(err, &refusal{}) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if k.down.replace(o.super, desired) {
		return true, nil
	}
	if stand(o.super) == present && (!equality.Semantic.DeepEqual(mergedSuper(k, o.super, desired), o.super) || s.subresourcesDiffer(ctx, k, o)) {
		return true, nil
	}
	m := k.down.mirror
	if m != nil && m.node(o.super) != "" && m.node(o.tenant) == "" && stand(o.tenant) == present {
		return true, nil
	}
	shown := s.shownBack(k, o.tenant, o.super)
	if !equality.Semantic.DeepEqual(shown, o.tenant) {
		return true, nil
	}
	if k.down.status == nil {
		return false, nil
	}
	k.down.status(s.view(ctx, o.key.Namespace), shown, o.super)
	return !k.down.same(shown, o.tenant), nil
}

// subresourcesDiffer says whether the copy lacks something that goes down through a subresource.
func (s *session) subresourcesDiffer(ctx context.Context, k *kind, o objects) bool {
	if len(k.down.subresources) == 0 {
		return false
	}
	merged := o.super.DeepCopyObject().(client.Object)
	for _, sub := range k.down.subresources {
		sub.merge(s.view(ctx, o.key.Namespace), merged, o.tenant)
	}
	return !equality.Semantic.DeepEqual(merged, o.super)
}

// differsUp says whether the tenant does not hold what it should be shown.
func (s *session) differsUp(ctx context.Context, k *kind, key client.ObjectKey) (bool, error) {
	o, err := s.readUp(ctx, k, key)
	switch {
	case err != nil:
		return false, err
	case o.tenant == nil:
		return o.shown != nil, nil
	case o.shown == nil:
		return fromSuper(o.tenant) && stand(o.tenant) == present, nil
	case !fromSuper(o.tenant), k.up.replace(o.tenant, o.shown), mergedBack(k, o) != nil:
		return true, nil
	}
	merged := mergedUp(k, o.tenant, o.shown)
	if k.up.status != nil {
		k.up.status(merged, o.shown)
	}
	return !equality.Semantic.DeepEqual(merged, o.tenant), nil
}

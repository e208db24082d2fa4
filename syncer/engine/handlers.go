package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/own"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// superHandler handles the super cluster's events of one kind.
func (e *Engine) superHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	switch {
	case k.Down != nil:
		return e.copyHandler(k)
	case k.Up.Node:
		return e.nodeHandler(k)
	case k.Up.Class:
		return e.classHandler(k)
	}
	show := func(obj client.Object) {
		for s, key := range e.viewers(k, obj) {
			s.SuperRecent.Seen(k.Name, obj)
			s.Enqueue(s.Request(k, key), queue.PriorityLow)
		}
	}
	return caches.Handler{
		Add:    func(obj client.Object, _ bool) { show(obj) },
		Update: func(_, obj client.Object) { show(obj) },
		Remove: func(obj client.Object, _ bool) { show(obj) },
	}
}

// isRejected reports whether the super cluster rejects an object.
func isRejected(e pending.Entry) bool { return e.State == pending.Rejected && !e.Denied }

// classHandler handles events of what every tenant may be offered. Rejected objects may depend on them.
func (e *Engine) classHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	event := func(obj client.Object) {
		e.eachSession(func(s *engagement) {
			s.Enqueue(s.Request(k, client.ObjectKeyFromObject(obj)), queue.PriorityNormal)
			s.EnqueuePending(isRejected, queue.PriorityLow)
		})
	}
	return caches.Handler{
		Add:    func(obj client.Object, _ bool) { event(obj) },
		Update: func(_, obj client.Object) { event(obj) },
		Remove: func(obj client.Object, _ bool) { event(obj) },
	}
}

// copyHandler handles events of copies of tenants' objects. Those of tenants that are not engaged are looked at when they are.
func (e *Engine) copyHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	event := func(obj client.Object, priority int) *engagement {
		if e.reviewOwn(k, obj, func(s *engagement) { s.SuperRecent.Seen(k.Name, obj) }) {
			return nil
		}
		s := e.owner(obj)
		if s != nil {
			s.SuperRecent.Seen(k.Name, obj)
			s.Enqueue(s.Request(k, k.Down.TenantKey(obj)), priority)
			s.affect(k, obj)
		}
		return s
	}
	return caches.Handler{
		Add: func(obj client.Object, _ bool) {
			e.usage.Observe(k, nil, obj)
			if s := event(obj, queue.PriorityNormal); s != nil {
				s.retarget(k, nil, obj)
			}
		},
		Update: func(was, obj client.Object) {
			e.usage.Observe(k, was, obj)
			if graceExpired(k.Down.Mirror, was, obj) {
				return
			}
			s := event(obj, queue.PriorityHigh)
			if s == nil {
				s = event(was, queue.PriorityHigh) // the labels that name its tenant were removed
			}
			if s != nil {
				s.retarget(k, was, obj)
			}
		},
		Remove: func(obj client.Object, _ bool) {
			e.usage.Observe(k, obj, nil)
			if e.reviewOwn(k, obj, func(s *engagement) { s.SuperRecent.Ended(k.Name, obj) }) {
				return
			}
			s := e.owner(obj)
			if s == nil {
				return
			}
			s.SuperRecent.Ended(k.Name, obj)
			event(obj, queue.PriorityHigh)
			s.retarget(k, obj, nil)
			s.freed(k)
			if m := k.Down.Mirror; m != nil && m.Node(obj) != "" {
				s.EnqueueLater(s.Request(s.Builtin[session.NodeKind], client.ObjectKey{Name: m.Node(obj)}), s.engine.nodeLinger)
			}
		},
	}
}

// nodeHandler handles events of nodes, of which every tenant may have objects, and ignores heartbeats.
func (e *Engine) nodeHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	event := func(obj client.Object) {
		if !e.known() {
			return
		}
		key := client.ObjectKeyFromObject(obj)
		e.eachSession(func(s *engagement) {
			if used, err := s.UsesNode(s.Ctx, key.Name); used || err != nil {
				s.Enqueue(s.Request(k, key), queue.PriorityNormal)
			}
		})
	}
	return caches.Handler{
		Add: func(obj client.Object, _ bool) { event(obj) },
		Update: func(was, now client.Object) {
			if !wire.Equal(k.Up.Desired(kinds.View{}, was), k.Up.Desired(kinds.View{}, now)) {
				event(now)
			}
		},
		Remove: func(obj client.Object, _ bool) { event(obj) },
	}
}

// tenantHandler handles the tenant's events of one kind.
func (s *engagement) tenantHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	if k.Up != nil && k.Up.Expires {
		// What expires is not put back when it goes.
		return caches.Handler{}
	}
	return caches.Handler{
		Add: func(obj client.Object, initial bool) {
			s.TenantRecent.Seen(k.Name, obj)
			if initial {
				s.Enqueue(s.Request(k, client.ObjectKeyFromObject(obj)), initialPriority(k, obj))
				return
			}
			s.latencies.begin(k, client.ObjectKeyFromObject(obj), time.Now())
			s.Enqueue(s.Request(k, client.ObjectKeyFromObject(obj)), queue.PriorityNormal)
			// Before, nothing has been tried that could wait, and caches that are not full yet would hold up this one's events.
			if s.Begun.Load() {
				s.Wake(s.Ctx, k, obj)
			}
		},
		Update: func(was, obj client.Object) {
			if s.TenantRecent.Seen(k.Name, obj) && onlyStatus(was, obj) {
				return // it is the one that was shown
			}
			if k.Down != nil && graceExpired(k.Down.Mirror, was, obj) {
				return
			}
			s.Enqueue(s.Request(k, client.ObjectKeyFromObject(obj)), queue.PriorityNormal)
			// Without a new generation, it is the status that changed; not all kinds have generations.
			if obj.GetGeneration() == 0 || obj.GetGeneration() != was.GetGeneration() {
				s.Review(obj.GetNamespace(), session.Differing(kinds.References(k, was), kinds.References(k, obj)))
			}
		},
		Remove: func(obj client.Object, missed bool) {
			s.doubts.Witness(obj, missed)
			s.TenantRecent.Ended(k.Name, obj)
			s.Enqueue(s.Request(k, client.ObjectKeyFromObject(obj)), queue.PriorityHigh)
			s.Review(obj.GetNamespace(), kinds.References(k, obj))
		},
	}
}

// graceExpired reports whether the grace period of a deleted object has expired. An apiserver drops the object with its next write, whose
// event leads to the same request.
func graceExpired(m *kinds.Mirror[client.Object], was, now client.Object) bool {
	if m == nil || session.Stand(was) != session.Deleting || len(now.GetFinalizers()) > 0 {
		return false
	}
	given := m.GracePeriodSeconds(now)
	return given != nil && *given == 0
}

// onlyStatus says whether nothing but the status differs between two states of an object, as far as can be told by its metadata.
func onlyStatus(was, now client.Object) bool {
	return now.GetUID() == was.GetUID() && now.GetGeneration() != 0 && now.GetGeneration() == was.GetGeneration() &&
		now.GetDeletionTimestamp().Equal(was.GetDeletionTimestamp()) && slices.Equal(now.GetFinalizers(), was.GetFinalizers()) &&
		maps.Equal(now.GetLabels(), was.GetLabels()) && maps.Equal(now.GetAnnotations(), was.GetAnnotations())
}

// initialPriority is the priority of an object that was there before the syncer: what has had no copy yet may have waited for it.
func initialPriority(k *kinds.Kind, obj client.Object) int {
	if k.Down != nil && k.Down.Mirror != nil && !k.Down.Mirror.Started(obj) {
		return queue.PriorityNormal
	}
	return queue.PriorityLow
}

// freed enqueues an object that waits for room, after a copy of its kind has gone.
func (s *engagement) freed(k *kinds.Kind) {
	if key, ok := s.Pending.AnyDenied(k.Name); ok {
		s.Enqueue(s.Request(k, key), queue.PriorityNormal)
	}
}

// affect enqueues the objects whose copies depend on a copy that has come, changed or gone.
func (s *engagement) affect(k *kinds.Kind, copied client.Object) {
	namespace := translate.OriginOf(copied).Namespace
	s.view.Forget(k.Name, namespace)
	if !s.Begun.Load() {
		return // everything is reconciled when the tenant begins
	}
	for _, name := range k.Down.Affects {
		to := s.Kind(name)
		if to == nil {
			continue
		}
		_ = s.Cache.EachKeyBy(s.Ctx, to, toolscache.NamespaceIndex, namespace, func(key client.ObjectKey) {
			s.Enqueue(s.Request(to, key), queue.PriorityNormal)
		})
	}
}

// retarget enqueues the tenant's objects that lead to an address which a copy got or lost. was is nil for a new copy, now for a
// deleted one.
func (s *engagement) retarget(k *kinds.Kind, was, now client.Object) {
	if k.Down.Mirror == nil || !s.Begun.Load() {
		return // everything is reconciled when the tenant begins
	}
	before, after := addressesOf(k.Down.Mirror, was), addressesOf(k.Down.Mirror, now)
	for address := range before {
		if !after[address] {
			s.enqueueTargeting(address)
		}
	}
	for address := range after {
		if !before[address] {
			s.enqueueTargeting(address)
		}
	}
}

// addressesOf returns the addresses that an object has to itself; none for nil.
func addressesOf(m *kinds.Mirror[client.Object], obj client.Object) map[string]bool {
	if obj == nil {
		return nil
	}
	found := map[string]bool{}
	for _, address := range m.Addresses(obj) {
		found[address] = true
	}
	return found
}

// enqueueTargeting enqueues the tenant's objects that lead to an address.
func (s *engagement) enqueueTargeting(address string) {
	for k := range s.Carried() {
		if k.Down == nil || k.Down.Targets == nil {
			continue
		}
		// Reading a cache that has synced does not fail; were it to, the patrol would find what differs.
		_ = s.Cache.EachKeyBy(s.Ctx, k, caches.IndexTargets, caches.AddressValue("", address), func(key client.ObjectKey) {
			s.Enqueue(s.Request(k, key), queue.PriorityHigh)
		})
	}
}

// reviewOwn has the namespace looked at in which something of the syncer's own has changed, and says whether it is that. The tenant
// takes note of it first.
func (e *Engine) reviewOwn(k *kinds.Kind, obj client.Object, note func(*engagement)) bool {
	if !own.IsOwn(k, obj) {
		return false
	}
	if !e.known() {
		return true // each namespace is looked at when its tenant begins
	}
	spaces := e.Builtin[session.NamespaceKind]
	ns, err := e.CacheOf(spaces).Get(context.Background(), spaces, client.ObjectKey{Name: obj.GetNamespace()})
	if err != nil || ns == nil {
		return true
	}
	origin := translate.OriginOf(ns)
	if s := e.session(multicluster.ClusterName(origin.Cluster)); s != nil {
		note(s)
		s.Enqueue(s.Request(spaces, client.ObjectKey{Name: origin.Namespace}), queue.PriorityNormal)
	}
	return true
}

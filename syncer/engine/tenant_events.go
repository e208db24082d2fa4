package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// tenantEvents turns events of a tenant into requests, and events of copies
// into requests for other objects of the tenant.
type tenantEvents struct {
	*session.Session

	digests   digestForgetter
	witness   deletionWitness
	latencies *latencies
}

// digestForgetter drops digests of copies.
type digestForgetter interface {
	Forget(kind, namespace string)
}

// deletionWitness remembers deletions by the tenant.
type deletionWitness interface {
	// Witness takes an object that was deleted; missed is set if the event was
	// missed.
	Witness(obj client.Object, missed bool)
}

// watch watches the tenant's objects of a kind, whose events lead to requests.
func (s *tenantEvents) watch(k *kinds.Kind) (toolscache.ResourceEventHandlerRegistration, error) {
	informer, err := s.Cache.Open(s.Ctx, k, caches.TenantIndexes(k))
	if err != nil {
		return nil, fmt.Errorf("watching the tenant's %s objects: %w", k.Name, err)
	}
	registration, err := informer.AddEventHandler(s.handler(k))
	if err != nil {
		return nil, fmt.Errorf("watching the tenant's %s objects: %w", k.Name, err)
	}
	return registration, nil
}

// handler handles the tenant's events of one kind.
func (s *tenantEvents) handler(k *kinds.Kind) toolscache.ResourceEventHandler {
	if k.Up != nil && k.Up.Expires {
		// An object that expires is not created again.
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
			// Before, nothing has been tried that could wait, and caches that
			// are not full yet would hold up this one's events.
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
			// Without a new generation, it is the status that changed; not all
			// kinds have generations.
			if obj.GetGeneration() == 0 || obj.GetGeneration() != was.GetGeneration() {
				s.Review(obj.GetNamespace(), session.Differing(kinds.References(k, was), kinds.References(k, obj)))
			}
		},
		Remove: func(obj client.Object, missed bool) {
			s.witness.Witness(obj, missed)
			s.TenantRecent.Ended(k.Name, obj)
			s.Enqueue(s.Request(k, client.ObjectKeyFromObject(obj)), queue.PriorityHigh)
			s.Review(obj.GetNamespace(), kinds.References(k, obj))
		},
	}
}

// freed enqueues an object that waits for room, after a copy of its kind has
// gone.
func (s *tenantEvents) freed(k *kinds.Kind) {
	if key, ok := s.Pending.AnyDenied(k.Name); ok {
		s.Enqueue(s.Request(k, key), queue.PriorityNormal)
	}
}

// affect enqueues the objects whose copies depend on a copy that has come,
// changed or gone.
func (s *tenantEvents) affect(k *kinds.Kind, copied client.Object) {
	namespace := translate.OriginOf(copied).Namespace
	s.digests.Forget(k.Name, namespace)
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

// retarget enqueues the tenant's objects that lead to an address which a copy
// got or lost. was is nil for a new copy, now for a deleted one.
func (s *tenantEvents) retarget(k *kinds.Kind, was, now client.Object) {
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

// enqueueTargeting enqueues the tenant's objects that lead to an address.
func (s *tenantEvents) enqueueTargeting(address string) {
	for k := range s.SyncedKinds() {
		if k.Down == nil || k.Down.Targets == nil {
			continue
		}
		// Reading a cache that has synced does not fail; were it to, the patrol
		// would find what differs.
		_ = s.Cache.EachKeyBy(s.Ctx, k, caches.IndexTargets, caches.AddressValue("", address), func(key client.ObjectKey) {
			s.Enqueue(s.Request(k, key), queue.PriorityHigh)
		})
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

// graceExpired reports whether the grace period of a deleted object has
// expired. An apiserver drops the object with its next write, whose event leads
// to the same request.
func graceExpired(m *kinds.Mirror[client.Object], was, now client.Object) bool {
	if m == nil || session.Stand(was) != session.Deleting || len(now.GetFinalizers()) > 0 {
		return false
	}
	given := m.GracePeriodSeconds(now)
	return given != nil && *given == 0
}

// onlyStatus reports whether only the status differs between two states of an
// object, as far as its metadata shows.
func onlyStatus(was, now client.Object) bool {
	return now.GetUID() == was.GetUID() && now.GetGeneration() != 0 && now.GetGeneration() == was.GetGeneration() &&
		now.GetDeletionTimestamp().Equal(was.GetDeletionTimestamp()) && slices.Equal(now.GetFinalizers(), was.GetFinalizers()) &&
		maps.Equal(now.GetLabels(), was.GetLabels()) && maps.Equal(now.GetAnnotations(), was.GetAnnotations())
}

// initialPriority is the priority of an object that was there before the
// syncer: what has had no copy yet may have waited for it.
func initialPriority(k *kinds.Kind, obj client.Object) int {
	if k.Down != nil && k.Down.Mirror != nil && !k.Down.Mirror.Started(obj) {
		return queue.PriorityNormal
	}
	return queue.PriorityLow
}

package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// runsAt returns a function that reports whether a copy of the tenant has an address to itself.
func (s *session) runsAt(ctx context.Context) func(address string) bool {
	return func(address string) bool {
		for _, k := range s.builtin {
			if k.Down == nil || k.Down.Mirror == nil {
				continue
			}
			if found, err := s.cacheOf(k).Has(ctx, k, caches.IndexAddresses, caches.AddressValue(s.lane(), address)); found && err == nil {
				return true
			}
		}
		return false
	}
}

// retarget enqueues the tenant's objects that lead to an address which a copy got or lost. was is nil for a new copy, now for a
// deleted one.
func (s *session) retarget(k *kinds.Kind, was, now client.Object) {
	if k.Down.Mirror == nil || !s.begun.Load() {
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
func (s *session) enqueueTargeting(address string) {
	for k := range s.carried() {
		if k.Down == nil || k.Down.Targets == nil {
			continue
		}
		// Reading a cache that has synced does not fail; were it to, the patrol would find what differs.
		_ = s.cache.EachKeyBy(s.ctx, k, caches.IndexTargets, caches.AddressValue("", address), func(key client.ObjectKey) {
			s.enqueue(s.request(k, key), queue.PriorityHigh)
		})
	}
}

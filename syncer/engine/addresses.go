package engine

import (
	"context"
	"net/netip"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// addressValue is the value of an address in indexAddresses and indexTargets. Equal addresses have one spelling.
func addressValue(cluster, address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		address = ip.Unmap().String()
	}
	return cluster + "/" + address
}

// runsAt returns a function that reports whether a copy of the tenant has an address to itself.
func (s *session) runsAt(ctx context.Context) func(address string) bool {
	return func(address string) bool {
		for _, k := range s.builtin {
			if k.down == nil || k.down.mirror == nil {
				continue
			}
			if found, err := k.cache.has(ctx, k, indexAddresses, addressValue(s.lane(), address)); found && err == nil {
				return true
			}
		}
		return false
	}
}

// retarget enqueues the tenant's objects that lead to an address which a copy got or lost. was is nil for a new copy, now for a
// deleted one.
func (s *session) retarget(k *kind, was, now client.Object) {
	if k.down.mirror == nil || !s.begun.Load() {
		return // everything is reconciled when the tenant begins
	}
	before, after := k.down.mirror.addressesOf(was), k.down.mirror.addressesOf(now)
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
func (m *mirror) addressesOf(obj client.Object) map[string]bool {
	if obj == nil {
		return nil
	}
	found := map[string]bool{}
	for _, address := range m.addresses(obj) {
		found[address] = true
	}
	return found
}

// enqueueTargeting enqueues the tenant's objects that lead to an address.
func (s *session) enqueueTargeting(address string) {
	for k := range s.carried() {
		if k.down == nil || k.down.targets == nil {
			continue
		}
		// Reading a cache that has synced does not fail; were it to, the patrol would find what differs.
		_ = s.cache.eachKeyBy(s.ctx, k, indexTargets, addressValue("", address), func(key client.ObjectKey) {
			s.enqueue(s.request(k, key), priorityHigh)
		})
	}
}

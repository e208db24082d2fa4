package kinds

import "sigs.k8s.io/controller-runtime/pkg/client"

// Mirror ties an object to its copy: when one is deleted, so is the other, with
// the tenant's grace period.
type Mirror[T client.Object] struct {
	// Started reports whether the tenant's object has had a copy, which is then
	// not created again.
	Started func(tenant T) bool
	// Node returns the node of an object; empty if it has none.
	Node func(obj T) string
	// Running reports whether the tenant can read that its object runs.
	Running func(tenant T) bool
	// Ended reports whether the copy has run to completion.
	Ended func(super T) bool
	// Bound returns a deep copy of the tenant's object in the state after its
	// binding to a node.
	Bound func(tenant T, node string) T
	// GracePeriodSeconds returns the grace period for the deletion of the
	// object.
	GracePeriodSeconds func(obj T) *int64
	// Addresses returns the addresses that only a running copy has.
	Addresses func(super T) []string
}

func (m *Mirror[T]) erase() *Mirror[client.Object] {
	if m == nil {
		return nil
	}
	return &Mirror[client.Object]{
		Started: reads(m.Started), Node: reads(m.Node), Running: or(reads(m.Running), func(client.Object) bool { return false }),
		Ended: reads(m.Ended), GracePeriodSeconds: reads(m.GracePeriodSeconds),
		Bound:     func(tenant client.Object, node string) client.Object { return m.Bound(tenant.(T), node) },
		Addresses: or(reads(m.Addresses), func(client.Object) []string { return nil }),
	}
}

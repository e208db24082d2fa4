package kinds

import "sigs.k8s.io/controller-runtime/pkg/client"

// Mirror is how an object is tied to its copy: when the one is deleted so is the other, with the tenant's grace period.
type Mirror[T client.Object] struct {
	// Started says whether the tenant's object has had a copy: it is then not made a second time.
	Started func(tenant T) bool
	// Node is the node that an object is on; empty if none.
	Node func(obj T) string
	// Ended says whether what the copy ran has come to its end.
	Ended func(super T) bool
	// Bound is a copy of the tenant's object as binding it to a node leaves it.
	Bound func(tenant T, node string) T
	// GracePeriodSeconds is how long the deletion of the object may take.
	GracePeriodSeconds func(obj T) *int64
	// Addresses are those that a running copy has to itself.
	Addresses func(super T) []string
}

func (m *Mirror[T]) erase() *Mirror[client.Object] {
	if m == nil {
		return nil
	}
	return &Mirror[client.Object]{
		Started: reads(m.Started), Node: reads(m.Node), Ended: reads(m.Ended), GracePeriodSeconds: reads(m.GracePeriodSeconds),
		Bound:     func(tenant client.Object, node string) client.Object { return m.Bound(tenant.(T), node) },
		Addresses: or(reads(m.Addresses), func(client.Object) []string { return nil }),
	}
}

package kinds

import "sigs.k8s.io/controller-runtime/pkg/client"

// Own is an object that the syncer creates in each of a tenant's namespaces of
// the super cluster, before any copy. No tenant declares it, so it is not a
// copy: a tenant's object with the name stays in the tenant, and the object is
// not validated.
type Own[T client.Object] struct {
	// Name is the name of the object in each namespace.
	Name string
	// Desired returns the object, whose metadata the engine sets; nil if the
	// tenant's namespaces should have none.
	Desired func(v View) T
}

func (o Own[T]) erase() Own[client.Object] {
	return Own[client.Object]{Name: o.Name, Desired: func(v View) client.Object { return objectOrNil(o.Desired(v)) }}
}

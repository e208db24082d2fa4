package kinds

import "sigs.k8s.io/controller-runtime/pkg/client"

// Own is an object of a kind that is in each of a tenant's namespaces of the super cluster, before anything of the tenant's is. No tenant
// has declared it, so it is nobody's copy: a tenant's object of the name stays in the tenant, and validators are not asked about it.
type Own[T client.Object] struct {
	// Name is the object's in each namespace.
	Name string
	// Desired is the object, whose metadata the engine fills in; nil if the tenant's namespaces are to have none.
	Desired func(v View) T
}

func (o Own[T]) erase() Own[client.Object] {
	return Own[client.Object]{Name: o.Name, Desired: func(v View) client.Object { return objectOrNil(o.Desired(v)) }}
}

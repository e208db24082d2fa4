package kinds

import "sigs.k8s.io/controller-runtime/pkg/client"

// Up is a kind that the super cluster shows to the tenant. A tenant sees what is in its namespaces, unless Node, Class or
// Namespace say otherwise.
type Up[T client.Object] struct {
	// Name is the kind's, such as Event.
	Name string
	// Object is an empty object, List an empty list.
	Object T
	List   client.ObjectList

	// Desired is what the tenant should hold: a new object with its name and namespace, or nil if the tenant should not
	// see it.
	Desired func(v View, super T) T
	// Merge writes what Desired says into a copy of the tenant's object, but for the status; Status, which may be nil,
	// writes that.
	Merge  func(tenant, desired T)
	Status func(tenant, desired T)
	// Replace says that the tenant's object differs in what cannot be changed in place, so that it has to be made anew.
	Replace func(tenant, desired T) bool
	// Back writes what a tenant may change into a copy of the super cluster's object.
	Back func(v View, super, tenant T)

	// Node is set for a kind of which a tenant sees those whose name is that of a node that runs its pods.
	Node bool
	// Class is set for a kind that tenants choose from: they see what is published, to all or to them.
	Class bool
	// Namespace is the namespace of the super cluster by which an object without one belongs to a tenant; empty if none.
	Namespace func(super T) string
	// Expires: objects go by themselves and are never deleted in the tenant.
	Expires bool
}

// Erase returns the kind with the type of its objects erased. Hooks with an obvious default have it where they were nil; the others
// stay nil.
func (u Up[T]) Erase() *Kind {
	return &Kind{
		Name: u.Name, Object: u.Object, List: u.List,
		Up: &Up[client.Object]{
			Name: u.Name, Object: u.Object, List: u.List,
			Desired: func(v View, super client.Object) client.Object { return objectOrNil(u.Desired(v, super.(T))) },
			Merge:   changes(u.Merge), Status: changes(u.Status), Back: changesViewed(u.Back),
			Replace: or2(compares(u.Replace), func(_, _ client.Object) bool { return false }),
			Node:    u.Node, Class: u.Class, Expires: u.Expires,
			Namespace: or(reads(u.Namespace), client.Object.GetNamespace),
		},
	}
}

// objectOrNil returns an object, or a nil interface for a nil pointer.
func objectOrNil[T client.Object](obj T) client.Object {
	var none T
	if client.Object(obj) == client.Object(none) {
		return nil
	}
	return obj
}

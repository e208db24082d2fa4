package kinds

import "sigs.k8s.io/controller-runtime/pkg/client"

// Up is a kind that is synced up: the super cluster's objects are shown to
// tenants. A tenant gets the objects in its namespaces, unless Node, Class or
// Namespace decide otherwise.
type Up[T client.Object] struct {
	// Name is the name of the kind, such as Event.
	Name string
	// Object is an empty object, List an empty list.
	Object T
	List   client.ObjectList
	// Summary, ClusterScoped and Optional are as for [Down].
	Summary                 string
	ClusterScoped, Optional bool

	// Desired returns the desired object of the tenant: a new object with its
	// name and namespace, or nil if the tenant should not have it.
	Desired func(v View, super T) T
	// Keep adds to the result of Desired what the tenant may have on its object
	// beside it; nil for nothing.
	Keep func(v View, tenant, desired T)
	// Merge writes the result of Desired, except the status, to a deep copy of
	// the tenant's object. Status, which may be nil, writes the status.
	Merge  func(tenant, desired T)
	Status func(tenant, desired T)
	// Replace reports whether the tenant's object differs in immutable fields,
	// so that it has to be recreated.
	Replace func(tenant, desired T) bool
	// Back writes the fields that a tenant may change to a deep copy of the
	// super cluster's object.
	Back func(v View, super, tenant T)

	// Node is set for a kind of which a tenant gets the objects with the name
	// of a node that runs its pods.
	Node bool
	// Class is set for a kind that tenants choose from: they get the objects
	// that are published, to all or to them.
	Class bool
	// Offered is set for a kind with namespaces to whose published objects, in
	// whatever namespace of the super cluster, objects of tenants may refer.
	Offered bool
	// Namespace returns the namespace of the super cluster by which a
	// cluster-scoped object belongs to a tenant; empty for none.
	Namespace func(super T) string
	// Expires is set for objects that expire by themselves and are never
	// deleted in the tenant.
	Expires bool
}

// Erase returns the kind without the type of its objects. Nil hooks with an
// obvious default are set to it; the others stay nil.
func (u Up[T]) Erase() *Kind {
	return &Kind{
		Name: u.Name, Object: u.Object, List: u.List,
		Summary: u.Summary, ClusterScoped: u.ClusterScoped, Optional: u.Optional,
		Up: &Up[client.Object]{
			Name: u.Name, Object: u.Object, List: u.List,
			Desired: func(v View, super client.Object) client.Object { return objectOrNil(u.Desired(v, super.(T))) },
			Keep:    changesViewed(u.Keep), Back: changesViewed(u.Back),
			Merge: changes(u.Merge), Status: changes(u.Status),
			Replace: or2(compares(u.Replace), func(_, _ client.Object) bool { return false }),
			Node:    u.Node, Class: u.Class, Offered: u.Offered, Expires: u.Expires,
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

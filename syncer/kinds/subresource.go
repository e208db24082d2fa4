package kinds

import "sigs.k8s.io/controller-runtime/pkg/client"

// Subresource is a part of an object that is written by a subresource.
type Subresource[T client.Object] struct {
	// Name is the name of the subresource, such as resize.
	Name string
	// Admit returns an error about parts that may not be synced down, which
	// Merge then omits; nil if all may. A nil Admit allows all. Parts that the
	// copy has already stay. The text becomes an event.
	Admit func(v View, super, tenant T) error
	// Merge writes the part of the tenant's object to a deep copy of the super
	// cluster's.
	Merge func(v View, super, tenant T)
	// Parts returns the parts that Merge has added, one by one: deep copies of
	// the super cluster's object with one part each. If the super cluster
	// rejects all together, each is tried separately. Nil for a single part.
	Parts func(super, merged T) []T
}

func (sub Subresource[T]) erase() Subresource[client.Object] {
	erased := Subresource[client.Object]{
		Name: sub.Name, Merge: changesViewed(sub.Merge),
		Admit: func(View, client.Object, client.Object) error { return nil },
		Parts: func(_, _ client.Object) []client.Object { return nil },
	}
	if sub.Admit != nil {
		erased.Admit = func(v View, super, tenant client.Object) error { return sub.Admit(v, super.(T), tenant.(T)) }
	}
	if sub.Parts != nil {
		erased.Parts = func(super, merged client.Object) []client.Object { return objectsOf(sub.Parts(super.(T), merged.(T))) }
	}
	return erased
}

// objectsOf returns objects without their type.
func objectsOf[T client.Object](typed []T) []client.Object {
	objects := make([]client.Object, len(typed))
	for i, obj := range typed {
		objects[i] = obj
	}
	return objects
}

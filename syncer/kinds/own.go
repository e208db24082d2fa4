package kinds

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Own is an object that the syncer creates in each of a tenant's namespaces of
// the super cluster, before any copy. No tenant declares it, so it is not a
// copy: a tenant's object with the name stays in the tenant, and the object is
// not validated.
type Own[T client.Object] struct {
	// Name is the name of the object in each namespace. It is reserved.
	Name string
	// Desired returns the object, whose metadata the engine sets; nil if the
	// tenant's namespaces should have none.
	Desired func(v View) T
}

func (o Own[T]) erase() Own[client.Object] {
	return Own[client.Object]{Name: o.Name, Desired: func(v View) client.Object { return objectOrNil(o.Desired(v)) }}
}

// OwnInNetworks are the objects of a kind that the syncer owns in the namespaces
// of a tenant with networks: one that closes the namespace, and one for each
// network that has or had pods there, which opens the network to itself. They
// are created before the first pod of the network. Those of a network are
// deleted with it.
type OwnInNetworks[T client.Object] struct {
	Closed Own[T]
	// Suffix follows the name of a network in the name of its object. Names that
	// end in it are reserved.
	Suffix string
	// Desired returns the object of a network, whose metadata the engine sets.
	Desired func(v View, n Network) T
}

// Of returns the object of a network.
func (o OwnInNetworks[T]) Of(n Network) Own[T] {
	return Own[T]{Name: n.Name + o.Suffix, Desired: func(v View) T { return o.Desired(v, n) }}
}

// NetworkOf returns the network whose object has a name, and false if the name
// is not that of such an object.
func (o OwnInNetworks[T]) NetworkOf(name string) (network string, is bool) {
	return strings.CutSuffix(name, o.Suffix)
}

func (o *OwnInNetworks[T]) erase() *OwnInNetworks[client.Object] {
	if o == nil {
		return nil
	}
	return &OwnInNetworks[client.Object]{
		Closed: o.Closed.erase(), Suffix: o.Suffix,
		Desired: func(v View, n Network) client.Object { return objectOrNil(o.Desired(v, n)) },
	}
}

package kinds

import "net/netip"

// Network is a network of a tenant, as far as objects of the super cluster
// depend on it.
type Network struct {
	Name string
	// Egress are the ranges of addresses outside of the cluster that pods of the
	// network may reach.
	Egress []netip.Prefix
}

// Package addresses knows the Service addresses and the domain that a cluster
// has by convention. The manager, the control planes and the syncer have to
// agree on them, and on how addresses of servers are written.
package addresses

import "net/netip"

// Numbers of addresses in a cluster's range of Service addresses.
const (
	// Apiserver is that of the service kubernetes.
	Apiserver = 1
	// DNS is that of the DNS service.
	DNS = 10
)

// DefaultDomain is the DNS domain of a cluster of which nothing is said.
const DefaultDomain = "cluster.local"

// In is the address of that number in a range; invalid if the range is, or is
// too small.
func In(cidr netip.Prefix, number int) netip.Addr {
	if !cidr.IsValid() {
		return netip.Addr{}
	}
	address := cidr.Masked().Addr()
	for range number {
		address = address.Next()
	}
	if !cidr.Contains(address) {
		return netip.Addr{}
	}
	return address
}

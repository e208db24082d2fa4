package addresses

import (
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// SliceType returns the type of an EndpointSlice with an address.
func SliceType(address netip.Addr) discoveryv1.AddressType {
	if address.Is4() {
		return discoveryv1.AddressTypeIPv4
	}
	return discoveryv1.AddressTypeIPv6
}

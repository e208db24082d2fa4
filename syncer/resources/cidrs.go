package resources

import "net/netip"

// inCIDRs reports whether an address is in one of these networks. It is false
// for an invalid address.
func inCIDRs[T ~string](cidrs []T, address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	for _, cidr := range cidrs {
		if prefix, err := netip.ParsePrefix(string(cidr)); err == nil && prefix.Contains(ip) {
			return true
		}
	}
	return false
}

package resources

import "net/netip"

// inCIDRs reports whether one of these networks contains an address. A text that is no address is in no network.
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

package egress

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
)

// reserved are addresses that no tenant's apiserver connects to, even if an
// admin allows them: those of this machine or its link, multicast and
// unassigned ones, the metadata services of clouds, and transition mechanisms
// that can contain one of them.
var reserved = append(parse(
	"0.0.0.0/8",       // this network; the first address is this machine
	"127.0.0.0/8",     // loopback
	"192.88.99.0/24",  // relays of 6to4
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, with the limited broadcast
	"::/96",           // unspecified, loopback, and embedded IPv4 addresses
	"::ffff:0:0:0/96", // translated IPv4 addresses
	"64:ff9b:1::/48",  // NAT64 within a network
	"100::/64",        // discard
	"2001::/32",       // Teredo
	"2002::/16",       // 6to4
	"fec0::/10",       // site-local
	"ff00::/8",        // multicast
), addresses.Metadata()...)

// nat64 is the prefix of IPv6 addresses that stand for IPv4 addresses.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func parse(prefixes ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(prefixes))
	for i, prefix := range prefixes {
		parsed[i] = netip.MustParsePrefix(prefix)
	}
	return parsed
}

// actual returns the IPv4 address that an IPv6 address stands for, or the address.
func actual(address netip.Addr) netip.Addr {
	if nat64.Contains(address) {
		bytes := address.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return address.Unmap()
}

// isReserved reports whether an address is reserved. An address with a zone is
// link-local.
func isReserved(address netip.Addr) bool {
	return !address.IsValid() || address.Zone() != "" || contains(reserved, address)
}

// ParseOutside reads the networks outside of the super cluster that an admin allows.
func ParseOutside(cidrs []string) ([]netip.Prefix, error) {
	return parseAllowed(cidrs, func(netip.Prefix) bool { return false })
}

// parseAllowed reads networks that an admin allows. Reserved ones are an error,
// unless they are exempt.
func parseAllowed(cidrs []string, exempt func(netip.Prefix) bool) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(cidrs))
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("%q must be a network, such as 203.0.113.0/24", cidr)
		}
		within := func(r netip.Prefix) bool { return r.Bits() <= prefix.Bits() && r.Contains(prefix.Addr()) }
		if prefix.Addr().Is4In6() || slices.ContainsFunc(reserved, within) && !exempt(prefix) {
			return nil, fmt.Errorf("%q is reserved: no tenant's apiserver connects there", cidr)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

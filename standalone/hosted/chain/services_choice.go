package chain

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
)

// addressChoice are the addresses that a Service may have by its network.
type addressChoice struct {
	// network is what the Service names; empty for the default network.
	network string
	// part is the range of all Services of one IP family.
	part netip.Prefix
	// own are the ranges of the network, and others those of other networks. A
	// network without ranges has what is left.
	own, others []netip.Prefix
}

// isFree reports whether no network has ranges.
func (c addressChoice) isFree() bool { return len(c.own) == 0 && len(c.others) == 0 }

// in returns the choice among the addresses of one IP family.
func (c addressChoice) in(part netip.Prefix) addressChoice {
	isOther := func(cidr netip.Prefix) bool { return cidr.Addr().Is4() != part.Addr().Is4() }
	return addressChoice{
		network: c.network, part: part,
		own: slices.DeleteFunc(slices.Clone(c.own), isOther), others: slices.DeleteFunc(slices.Clone(c.others), isOther),
	}
}

// has reports whether an address is one of the network's.
func (c addressChoice) has(address netip.Addr) bool {
	contains := func(p netip.Prefix) bool { return p.Contains(address) }
	if len(c.own) > 0 {
		return slices.ContainsFunc(c.own, contains)
	}
	return !slices.ContainsFunc(c.others, contains)
}

// fixed returns the addresses with a meaning in the cluster, which Services of
// any network can name.
func (c addressChoice) fixed() []netip.Addr {
	var all []netip.Addr
	for _, number := range []int{addresses.Apiserver, addresses.DNS} {
		if address := addresses.In(c.part, number); address.IsValid() {
			all = append(all, address)
		}
	}
	return all
}

// pick returns one of the addresses that is not taken, at random; invalid if all
// are. As upstream, it leaves the start of each range to Services that name an
// address, as long as it can.
func (c addressChoice) pick(isTaken func(netip.Addr) bool) netip.Addr {
	for _, all := range []bool{false, true} {
		if address := anyOf(c.set(all).Ranges(), isTaken); address.IsValid() {
			return address
		}
	}
	return netip.Addr{}
}

// set returns the addresses, all or without the start of each range.
func (c addressChoice) set(all bool) *netipx.IPSet {
	ranges := c.own
	if len(ranges) == 0 {
		ranges = []netip.Prefix{c.part}
	}
	var set, part netipx.IPSetBuilder
	for _, cidr := range ranges {
		set.AddPrefix(cidr)
		if start := startOf(cidr); !all && start.IsValid() {
			set.RemovePrefix(start)
		}
	}
	if len(c.own) == 0 {
		for _, cidr := range c.others {
			set.RemovePrefix(cidr)
		}
	}
	for _, cidr := range append([]netip.Prefix{c.part}, ranges...) {
		set.Remove(cidr.Masked().Addr())
		if cidr.Addr().Is4() {
			set.Remove(netipx.PrefixLastIP(cidr))
		}
	}
	for _, address := range c.fixed() {
		set.Remove(address)
	}
	part.AddPrefix(c.part)
	within, _ := part.IPSet() // of one valid range
	set.Intersect(within)
	found, _ := set.IPSet() // of valid ranges and addresses
	return found
}

// Upstream leaves a sixteenth of a range to Services that name an address: 16 to
// 256 addresses, and none of a range that is not larger.
const (
	startFraction = 4 // bits
	leastStart    = 4
	mostStart     = 8
)

// startOf returns the start of a range that upstream allocates last; invalid if
// it has none.
func startOf(cidr netip.Prefix) netip.Prefix {
	size := cidr.Addr().BitLen() - cidr.Bits()
	if size <= leastStart {
		return netip.Prefix{}
	}
	bits := min(max(size-startFraction, leastStart), mostStart)
	return netip.PrefixFrom(cidr.Masked().Addr(), cidr.Addr().BitLen()-bits)
}

// anyOf returns an address of ranges that is not taken, at random; invalid if all
// are. It tries each taken address once at most.
func anyOf(ranges []netipx.IPRange, isTaken func(netip.Addr) bool) netip.Addr {
	total := uint64(0)
	for _, r := range ranges {
		total += sizeOf(r)
	}
	if total == 0 {
		return netip.Addr{}
	}
	start := rand.Uint64N(total) //nolint:gosec // no secret
	for i := range total {
		if address := numbered(ranges, (start+i)%total); !isTaken(address) {
			return address
		}
	}
	return netip.Addr{}
}

// sizeOf returns the number of addresses of a range within a tenant's, which has
// no more than a million.
func sizeOf(r netipx.IPRange) uint64 { return lowOf(r.To()) - lowOf(r.From()) + 1 }

// numbered returns the address of ranges with a number.
func numbered(ranges []netipx.IPRange, number uint64) netip.Addr {
	for _, r := range ranges {
		if size := sizeOf(r); number >= size {
			number -= size
			continue
		}
		bytes := r.From().As16()
		binary.BigEndian.PutUint64(bytes[8:], lowOf(r.From())+number)
		return netip.AddrFrom16(bytes).Unmap()
	}
	return netip.Addr{}
}

// lowOf returns the lower half of an address.
func lowOf(address netip.Addr) uint64 {
	bytes := address.As16()
	return binary.BigEndian.Uint64(bytes[8:])
}

// String describes the addresses.
func (c addressChoice) String() string {
	if len(c.own) == 0 {
		return fmt.Sprintf("%s without the ranges of other networks", c.part)
	}
	var ranges []string
	for _, cidr := range c.own {
		ranges = append(ranges, cidr.String())
	}
	return strings.Join(ranges, ", ")
}

// exhausted returns the error of a Service for which no address is left.
func (c addressChoice) exhausted(service *api.Service) error {
	return apierrors.NewForbidden(api.Resource("services"), service.Name, fmt.Errorf(
		"no address is left of %s: delete Services, or change spec.service.cidrs of Networks", c))
}

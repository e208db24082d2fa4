// Package servicecidr divides the super cluster's addresses among tenants. It is pure: it reads nothing but its arguments.
package servicecidr

import (
	"errors"
	"fmt"
	"net/netip"
)

// Least and most bits of addresses that an apiserver takes as its range of Services.
const (
	minHostBits = 3
	maxHostBits = 20
)

// Pool are parts of one range of Service addresses that the super cluster serves, one part for each tenant, so that a Service
// has the same address in both clusters. The zero value has no part for anybody.
type Pool struct {
	// Pool is the range that is divided. It lies within one of the super cluster's own.
	CIDR netip.Prefix
	// Bits is the length of the prefix of each part.
	PartBits int
}

// errExhausted is why there is no part left.
var errExhausted = errors.New("all of it is taken: add tenants to another super cluster, " +
	"or start vc-manager with a larger --service-cidr-pool")

// Enabled says whether there is anything to divide.
func (r Pool) Enabled() bool { return r.CIDR.IsValid() }

// Validate says what is wrong with the ranges.
func (r Pool) Validate() error {
	if !r.Enabled() {
		return nil
	}
	size := r.CIDR.Addr().BitLen()
	switch {
	case r.CIDR != r.CIDR.Masked():
		return fmt.Errorf("%s has host bits set: it would be %s", r.CIDR, r.CIDR.Masked())
	case r.PartBits < r.CIDR.Bits():
		return fmt.Errorf("parts of /%d are larger than the whole, %s", r.PartBits, r.CIDR)
	case size-r.PartBits < minHostBits || size-r.PartBits > maxHostBits:
		return fmt.Errorf("parts of /%d do not hold the 8 to 1048576 addresses that an apiserver takes: a prefix of /%d to /%d does",
			r.PartBits, size-maxHostBits, size-minHostBits)
	}
	return nil
}

// Contains says whether a range lies within the pool.
func (r Pool) Contains(part netip.Prefix) bool {
	return r.Enabled() && part.IsValid() && r.CIDR.Bits() <= part.Bits() && r.CIDR.Contains(part.Addr())
}

// Next is the first part that overlaps with none of those that are taken. It fails if there is none left.
func (r Pool) Next(taken []netip.Prefix) (netip.Prefix, error) {
	candidate := netip.PrefixFrom(r.CIDR.Addr(), r.PartBits)
	for r.Contains(candidate) {
		blocking, free := overlapping(candidate, taken)
		if free {
			return candidate, nil
		}
		candidate = following(candidate, blocking)
	}
	return netip.Prefix{}, fmt.Errorf("no part of %s is left for this tenant, since %w", r.CIDR, errExhausted)
}

// Overlaps says whether a range has addresses in common with one of those that are taken.
func Overlaps(part netip.Prefix, taken []netip.Prefix) bool {
	_, free := overlapping(part, taken)
	return !free
}

// overlapping is one of the ranges that share addresses with a part; it is free if there is none.
func overlapping(part netip.Prefix, taken []netip.Prefix) (with netip.Prefix, free bool) {
	for _, other := range taken {
		if part.Overlaps(other) {
			return other, false
		}
	}
	return netip.Prefix{}, true
}

// following is the part after a candidate that begins behind what blocks it; invalid behind the last address there is.
func following(candidate, blocking netip.Prefix) netip.Prefix {
	end := lastOf(candidate)
	if other := lastOf(blocking); end.Less(other) {
		end = other
	}
	next := end.Next()
	if !next.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(next, candidate.Bits())
}

// lastOf is the last address of a range.
func lastOf(part netip.Prefix) netip.Addr {
	bytes := part.Masked().Addr().AsSlice()
	for bit := part.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes) // of the length that an address has
	return last
}

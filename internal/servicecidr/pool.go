// Package servicecidr allocates a part of the super cluster's Service addresses
// to each tenant. It is pure: what is already allocated is an argument.
package servicecidr

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// The host bits that an apiserver accepts for its Service CIDR.
const (
	minHostBits = 3
	maxHostBits = 20
)

// Pool is a range of the super cluster's Service addresses. Each tenant gets a
// part of it, so that a Service has the same address in both clusters. The zero
// value is disabled: it has no parts.
type Pool struct {
	// CIDR is the range to divide. It lies within a Service CIDR of the super cluster.
	CIDR netip.Prefix
	// PartBits is the prefix length of each part.
	PartBits int
}

var errExhausted = errors.New("all of it is taken: add tenants to another super cluster, " +
	"or start vc-manager with a larger --service-cidr-pool")

// Enabled reports whether the pool has parts.
func (p Pool) Enabled() bool { return p.CIDR.IsValid() }

// Validate returns an error if the range cannot be divided into parts that an
// apiserver accepts.
func (p Pool) Validate() error {
	if !p.Enabled() {
		return nil
	}
	size := p.CIDR.Addr().BitLen()
	switch {
	case p.CIDR != p.CIDR.Masked():
		return fmt.Errorf("%s has host bits set: it would be %s", p.CIDR, p.CIDR.Masked())
	case p.PartBits < p.CIDR.Bits():
		return fmt.Errorf("parts of /%d are larger than the whole, %s", p.PartBits, p.CIDR)
	case size-p.PartBits < minHostBits || size-p.PartBits > maxHostBits:
		return fmt.Errorf("parts of /%d do not hold the 8 to 1048576 addresses that an apiserver takes: a prefix of /%d to /%d does",
			p.PartBits, size-maxHostBits, size-minHostBits)
	}
	return nil
}

// Contains reports whether a range lies within the pool.
func (p Pool) Contains(part netip.Prefix) bool {
	return p.Enabled() && part.IsValid() && p.CIDR.Bits() <= part.Bits() && p.CIDR.Contains(part.Addr())
}

// Next returns the first part that overlaps with none of the taken ranges. It
// returns an error if the pool is exhausted.
func (p Pool) Next(taken []netip.Prefix) (netip.Prefix, error) {
	candidate := netip.PrefixFrom(p.CIDR.Addr(), p.PartBits)
	for _, other := range slices.SortedFunc(slices.Values(taken), netip.Prefix.Compare) {
		if candidate.Overlaps(other) {
			candidate = following(candidate, other)
		}
	}
	if p.Contains(candidate) {
		return candidate, nil
	}
	return netip.Prefix{}, fmt.Errorf("no part of %s is left for this tenant, since %w", p.CIDR, errExhausted)
}

// Overlaps reports whether a range has addresses in common with a taken one.
func Overlaps(part netip.Prefix, taken []netip.Prefix) bool {
	return slices.ContainsFunc(taken, part.Overlaps)
}

// following returns the next part behind the candidate and the range that
// blocks it, or an invalid one at the end of the address space.
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

// lastOf returns the last address of a range.
func lastOf(part netip.Prefix) netip.Addr {
	bytes := part.Masked().Addr().AsSlice()
	for bit := part.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes) // of the length that an address has
	return last
}

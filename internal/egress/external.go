package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// External decides at which addresses the platform connects to external control
// planes: those that it does not run. Their owners choose the address, and control
// the DNS of its name. Unchecked, a connection could reach a server in the
// platform's own network.
type External struct {
	// Allowed are networks that an admin allows beside public addresses.
	Allowed []netip.Prefix
	// Internal are the super cluster's networks of pods and Services. They are
	// closed even if they are public, unless Allowed contains them.
	Internal []netip.Prefix
	// Machine returns the addresses of this machine, which are closed likewise.
	Machine func() ([]netip.Addr, error)
}

// NewExternal makes an External of networks in CIDR notation: the allowed ones,
// and those of the super cluster's pods and Services.
func NewExternal(allowed, internal []string) (*External, error) {
	open, err := parseAllowed(allowed, func(network netip.Prefix) bool { return network.Addr().IsLoopback() })
	if err != nil {
		return nil, fmt.Errorf("--external-cidr: %w", err)
	}
	closed, err := parseInternal(internal)
	if err != nil {
		return nil, err
	}
	return &External{Allowed: open, Internal: closed, Machine: Machine}, nil
}

// ErrExternalAddress refuses the address of an external control plane. A name that
// cannot be resolved gets the same error: tenants must not learn which names the
// platform's DNS resolves.
var ErrExternalAddress = errors.New("the address of the control plane is not allowed, or its name cannot be resolved: " +
	"an admin of the platform can allow networks by --external-cidr of vc-gateway")

// Dial connects to an external control plane, as net.Dialer.DialContext does.
func (e *External) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := dialChecked(ctx, network, address, e.check, ErrExternalAddress)
	if errors.Is(err, ErrExternalAddress) {
		return nil, ErrExternalAddress // without the resolved address
	}
	return conn, err
}

func (e *External) check(to netip.Addr) error {
	if !e.allows(to) {
		return ErrExternalAddress
	}
	return nil
}

// allows reports whether the platform connects to an address.
func (e *External) allows(to netip.Addr) bool {
	to = actual(to)
	switch {
	case isReserved(to) && !to.IsLoopback():
		return false
	case slices.ContainsFunc(e.Allowed, func(p netip.Prefix) bool { return p.Contains(to) && p.Addr().IsLoopback() == to.IsLoopback() }):
		return true // 0.0.0.0/0 does not open loopback
	}
	return isPublic(to) && !contains(e.Internal, to) && !isOf(e.Machine, to)
}

// unrouted are networks that the Internet does not route, beside private and
// reserved ones.
var unrouted = parse(
	"100.64.0.0/10", // carrier-grade NAT
	"192.0.0.0/24",  // protocol assignments
	"198.18.0.0/15", // benchmarks
)

// isPublic reports whether the Internet routes an address, unless it is reserved.
func isPublic(address netip.Addr) bool {
	return !address.IsLoopback() && !address.IsPrivate() && !contains(unrouted, address)
}

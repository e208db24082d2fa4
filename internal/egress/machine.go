package egress

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Machine returns the addresses of this machine.
func Machine() ([]netip.Addr, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	own := make([]netip.Addr, 0, len(interfaces))
	for _, address := range interfaces {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			own = append(own, prefix.Addr().Unmap())
		}
	}
	return own, nil
}

// isOf reports whether a machine has an address. It reports true if the addresses
// of the machine cannot be listed.
func isOf(machine func() ([]netip.Addr, error), address netip.Addr) bool {
	own, err := machine()
	return err != nil || slices.Contains(own, address)
}

package egress

import (
	"fmt"
	"net"
	"net/netip"
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

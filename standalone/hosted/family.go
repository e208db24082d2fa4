package hosted

import (
	"errors"
	"fmt"

	netutils "k8s.io/utils/net"
)

// ErrFamily means that the first range of ClusterIPs of a control plane is not of
// the IP family of the address at which pods reach it.
var ErrFamily = errors.New("the first service CIDR is of another IP family than the address for pods")

// defaultServiceCIDR returns the range of control planes that have none.
func (h *Host) defaultServiceCIDR() string {
	if netutils.IsIPv6(h.opts.PodAddress) {
		return DefaultServiceCIDRv6
	}
	return DefaultServiceCIDR
}

// checkFamily returns an error if pods could not reach a control plane by its
// Service kubernetes, whose endpoint has to be of the same family.
func (h *Host) checkFamily(spec Spec) error {
	if h.opts.PodAddress == nil || netutils.IsIPv6(h.opts.PodAddress) == netutils.IsIPv6CIDRString(spec.ServiceCIDR) {
		return nil
	}
	return fmt.Errorf("control plane %q: %w: they are %s and %s", spec.Name, ErrFamily, spec.ServiceCIDR, h.opts.PodAddress)
}

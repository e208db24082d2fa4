package provisioner

import (
	"net/netip"
	"strings"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// mostBits and fewestBits are the bits of the addresses in the service ranges that
// an apiserver takes.
const mostBits, fewestBits = 20, 3

// checkSpec says what in the spec a hosted control plane cannot do.
func checkSpec(spec tenancyv1alpha1.VirtualClusterSpec, have string) error {
	if !satisfies(have, spec.KubernetesVersion) {
		return provisioner.Failf(tenancyv1alpha1.ReasonUnsupportedVersion,
			"spec.kubernetesVersion is %s, but hosted control planes run %s: set it to that, or remove it", spec.KubernetesVersion, have)
	}
	return checkServiceCIDR(spec.ServiceCIDR)
}

// satisfies reports whether the version we have is the one that is wanted: the
// same release, or any of the same minor version if no more is said. The "v" is
// optional.
func satisfies(have, want string) bool {
	have, want = strings.TrimPrefix(have, "v"), strings.TrimPrefix(want, "v")
	if want == "" || have == want {
		return true
	}
	return strings.Count(want, ".") == 1 && strings.HasPrefix(have, want+".")
}

// checkServiceCIDR refuses what the apiserver would refuse at every start.
func checkServiceCIDR(cidr string) error {
	if cidr == "" {
		return nil
	}
	network, err := netip.ParsePrefix(cidr)
	if err != nil {
		return invalidCIDR(cidr, "is no network")
	}
	if bits := network.Addr().BitLen() - network.Bits(); bits > mostBits || bits < fewestBits {
		return invalidCIDR(cidr, "does not hold 8 to 1048576 addresses")
	}
	return nil
}

func invalidCIDR(cidr, why string) error {
	return provisioner.Failf(tenancyv1alpha1.ReasonInvalidSpec,
		"spec.serviceCidr %s %s: it cannot be changed, so create the VirtualCluster again with one such as 10.96.0.0/16, or with none", cidr, why)
}

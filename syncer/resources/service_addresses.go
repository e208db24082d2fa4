package resources

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// setAddresses requests the addresses of the tenant's Service. A tenant without
// a range of the super cluster's addresses gets others. A tenant's apiserver
// may return anything, including fields that no apiserver would store.
func setAddresses(t translate.Tenant, spec *corev1.ServiceSpec) error {
	switch {
	case spec.Type == corev1.ServiceTypeExternalName:
		spec.ClusterIP, spec.ClusterIPs = "", nil
		return nil
	case spec.ClusterIP == corev1.ClusterIPNone:
		return checkHeadless(spec)
	case !t.ServiceCIDR.IsValid():
		spec.ClusterIP, spec.ClusterIPs = "", nil
		return nil
	}
	named := spec.ClusterIPs
	switch {
	case len(named) == 0 && spec.ClusterIP == "":
		return fmt.Errorf("it has no address yet; it needs one of this cluster's range %s", t.ServiceCIDR)
	case len(named) == 0:
		named = []string{spec.ClusterIP}
	case named[0] != spec.ClusterIP:
		return fmt.Errorf("spec.clusterIP %q is not the first of spec.clusterIPs, %q", spec.ClusterIP, named[0])
	}
	addresses, err := ownAddresses(t.ServiceRanges(), named)
	if err != nil {
		return err
	}
	spec.ClusterIP, spec.ClusterIPs = addresses[0], addresses
	if t.SecondaryServiceCIDR.IsValid() {
		setFamilies(spec)
	}
	return nil
}

// setFamilies requests no other IP families than those of the addresses, for a
// tenant with addresses of both: the super cluster would allocate one more for a
// policy that prefers both.
func setFamilies(spec *corev1.ServiceSpec) {
	spec.IPFamilies = nil
	for _, address := range spec.ClusterIPs {
		family := corev1.IPv4Protocol
		if netutils.IsIPv6String(address) {
			family = corev1.IPv6Protocol
		}
		spec.IPFamilies = append(spec.IPFamilies, family)
	}
	spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	if len(spec.IPFamilies) > 1 {
		spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	}
}

// checkHeadless rejects addresses of a headless service.
func checkHeadless(spec *corev1.ServiceSpec) error {
	for _, text := range spec.ClusterIPs {
		if text != corev1.ClusterIPNone {
			return fmt.Errorf("spec.clusterIP is None, and spec.clusterIPs has %q", text)
		}
	}
	return nil
}

// ownAddresses returns addresses in canonical form if all are in the tenant's
// ranges. A ServiceCIDR that the tenant created itself can contain any address,
// including another tenant's.
func ownAddresses(own []netip.Prefix, texts []string) ([]string, error) {
	addresses := slices.Clone(texts)
	for i, text := range texts {
		ip, err := netip.ParseAddr(text)
		if err != nil || !slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Contains(ip) }) {
			return nil, fmt.Errorf("its address %s is not one of this cluster's addresses, which are in %s; "+
				"recreate the Service with one of these, or without", text, inText(own))
		}
		addresses[i] = ip.String()
	}
	return addresses, nil
}

// inText returns ranges as text.
func inText(ranges []netip.Prefix) string {
	texts := make([]string, len(ranges))
	for i, cidr := range ranges {
		texts[i] = cidr.String()
	}
	return strings.Join(texts, " and ")
}

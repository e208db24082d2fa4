package resources

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/internal/names"
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
	addresses, err := ownAddresses(t.ServiceCIDR, named)
	if err != nil {
		return err
	}
	spec.ClusterIP, spec.ClusterIPs = addresses[0], addresses
	return nil
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
// range. A ServiceCIDR that the tenant created itself can contain any address,
// including another tenant's.
func ownAddresses(own netip.Prefix, texts []string) ([]string, error) {
	addresses := slices.Clone(texts)
	for i, text := range texts {
		ip, err := netip.ParseAddr(text)
		if err != nil || !own.Contains(ip) {
			return nil, fmt.Errorf("its address %s is not one of this cluster's addresses, which are in %s; "+
				"recreate the Service with one of these, or without", text, own)
		}
		addresses[i] = ip.String()
	}
	return addresses, nil
}

// givenReserved reports whether the super cluster chose an address for a copy
// that its policy reserves for others. A copy with an address of the tenant's
// range only gets this error right after its namespace was annotated with the
// range. A policy that failed, instead of deciding, returns another reason than
// Forbidden.
func givenReserved(rejection error) bool {
	const denied = "ValidatingAdmissionPolicy '" + names.ServiceAddressPolicy + "'"
	return apierrors.IsForbidden(rejection) && strings.Contains(rejection.Error(), denied)
}

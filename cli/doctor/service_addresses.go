package doctor

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// serviceAddresses checks whether Services of the platform have addresses of the
// pool of the tenants: the super cluster chooses an address out of all its
// ranges, and a tenant cannot have the same.
func serviceAddresses(ctx context.Context, s *Super) Result {
	pool := &networkingv1.ServiceCIDRList{}
	if err := s.Client.List(ctx, pool, client.MatchingLabels{names.ServiceCIDRPool: "true"}); err != nil {
		return unread(fmt.Errorf("list ServiceCIDRs: %w", err))
	}
	if len(pool.Items) == 0 {
		return skipped("tenants have no Service addresses of the super cluster")
	}
	services := &corev1.ServiceList{}
	if err := s.Client.List(ctx, services); err != nil {
		return unread(fmt.Errorf("list Services: %w", err))
	}
	return serviceAddressesVerdict(pool.Items, services.Items)
}

// serviceAddressesVerdict judges by the Services that are copied from no tenant.
func serviceAddressesVerdict(pool []networkingv1.ServiceCIDR, services []corev1.Service) Result {
	var ranges []netip.Prefix
	for _, part := range pool {
		for _, cidr := range part.Spec.CIDRs {
			if prefix, err := netip.ParsePrefix(cidr); err == nil { // the apiserver validates it
				ranges = append(ranges, prefix)
			}
		}
	}
	var found []string
	for _, service := range services {
		if _, copied := service.Labels[names.VCName]; copied {
			continue
		}
		for _, address := range service.Spec.ClusterIPs {
			if isIn(ranges, address) {
				found = append(found, fmt.Sprintf("%s/%s has %s", service.Namespace, service.Name, address))
			}
		}
	}
	if len(found) > 0 {
		return warning("Create these Services again with another clusterIP, before a tenant needs the address",
			"Services of the platform have addresses that tenants may get: %s", enumerate(found))
	}
	return ok("no Service of the platform has an address of the tenants")
}

// isIn reports whether an address is in one of the ranges; None is in none.
func isIn(ranges []netip.Prefix, address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	for _, r := range ranges {
		if r.Contains(ip) {
			return true
		}
	}
	return false
}

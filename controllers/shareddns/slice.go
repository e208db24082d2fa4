package shareddns

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryv1ac "k8s.io/client-go/applyconfigurations/discovery/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// isShared reports whether a Service is the copy of the one that vc-manager
// ensures in a tenant, at the tenant's DNS address. A tenant that changes the
// Service leaves the shared DNS.
func isShared(svc *corev1.Service, clusterKey string, address netip.Addr) bool {
	return asksShared(svc, clusterKey) && svc.Spec.ClusterIP == address.String()
}

// asksShared reports whether a Service is the copy of one that the shared DNS is
// to serve, of a tenant.
func asksShared(svc *corev1.Service, clusterKey string) bool {
	return svc.Annotations[names.Cluster] == clusterKey && svc.DeletionTimestamp.IsZero() &&
		svc.Spec.Type == corev1.ServiceTypeClusterIP && svc.Spec.Selector[names.Label(names.DNS)] == names.Shared
}

// convertedAddress returns the address of the Service that vc-manager ensures for a
// converted tenant, which the super cluster has chosen; invalid for one that the tenant
// has changed.
func convertedAddress(svc *corev1.Service) netip.Addr {
	if !svc.DeletionTimestamp.IsZero() || svc.Spec.Type != corev1.ServiceTypeClusterIP || len(svc.Spec.Selector) > 0 {
		return netip.Addr{}
	}
	address, _ := netip.ParseAddr(svc.Spec.ClusterIP) // invalid if there is none
	return address
}

// desiredSlice returns the EndpointSlice of a DNS Service of a tenant, in the
// namespace of the super cluster that has the tenant's DNS Services.
func desiredSlice(
	vc *tenancyv1alpha1.VirtualCluster, service string, port int32, kind discoveryv1.AddressType, servers []string,
) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.SuperNamespace(vc.Status.ClusterNamespace, metav1.NamespaceSystem), Name: names.SharedDNSSliceOf(service),
			Labels: map[string]string{
				discoveryv1.LabelServiceName: service,
				discoveryv1.LabelManagedBy:   string(fieldOwner),
				names.VCName:                 vc.Name,
				names.VCNamespace:            vc.Namespace,
				names.DNSPort:                strconv.Itoa(int(port)),
			},
			Annotations: map[string]string{names.DNSDomain: cmp.Or(vc.Spec.ClusterDomain, addresses.DefaultDomain)},
		},
		AddressType: kind,
		Ports: []discoveryv1.EndpointPort{
			{Name: new("dns"), Protocol: new(corev1.ProtocolUDP), Port: new(port)},
			{Name: new("dns-tcp"), Protocol: new(corev1.ProtocolTCP), Port: new(port)},
		},
	}
	for _, address := range servers {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return slice
}

// upToDate reports whether an EndpointSlice has all of the wanted one.
func upToDate(have, want *discoveryv1.EndpointSlice) bool {
	for key, value := range want.Labels {
		if have.Labels[key] != value {
			return false
		}
	}
	return have.Annotations[names.DNSDomain] == want.Annotations[names.DNSDomain] &&
		equality.Semantic.DeepEqual(have.Ports, want.Ports) && equality.Semantic.DeepEqual(have.Endpoints, want.Endpoints)
}

// applyOf returns the EndpointSlice as it is applied.
func applyOf(want *discoveryv1.EndpointSlice) *discoveryv1ac.EndpointSliceApplyConfiguration {
	apply := discoveryv1ac.EndpointSlice(want.Name, want.Namespace).
		WithLabels(want.Labels).WithAnnotations(want.Annotations).WithAddressType(want.AddressType)
	for _, p := range want.Ports {
		apply.WithPorts(discoveryv1ac.EndpointPort().WithName(*p.Name).WithProtocol(*p.Protocol).WithPort(*p.Port))
	}
	for _, e := range want.Endpoints {
		apply.WithEndpoints(discoveryv1ac.Endpoint().WithAddresses(e.Addresses...).
			WithConditions(discoveryv1ac.EndpointConditions().WithReady(true)))
	}
	return apply
}

// readyAddresses returns the addresses of a type that are ready, in order.
func readyAddresses(all []discoveryv1.EndpointSlice, kind discoveryv1.AddressType) []string {
	var ready []string
	for i := range all {
		if all[i].AddressType != kind {
			continue
		}
		for _, endpoint := range all[i].Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready = append(ready, endpoint.Addresses...)
			}
		}
	}
	slices.Sort(ready)
	return slices.Compact(ready)
}

package resources

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ForSharedDNS returns the kinds for a super cluster with a DNS that tenants
// share, which reads only the super cluster: Services of type ExternalName that
// would stay in the tenant have a copy that only this DNS can resolve. To other
// components, it is a headless Service without endpoints. NetworkPolicies that
// allow egress to the tenant's DNS allow it to the shared one.
func ForSharedDNS(flows []kinds.Flow) []kinds.Flow {
	out := make([]kinds.Flow, len(flows))
	for i, flow := range flows {
		switch k := flow.(type) {
		case kinds.Down[*corev1.Service]:
			flow = withNames(k)
		case kinds.Down[*networkingv1.NetworkPolicy]:
			flow = withDNSRules(k)
		}
		out[i] = flow
	}
	return out
}

func withNames(services kinds.Down[*corev1.Service]) kinds.Down[*corev1.Service] {
	staysIn, desired, replace := services.Skip, services.Desired, services.Replace
	services.Skip = nil
	services.Desired = func(v kinds.View, tenant *corev1.Service) (*corev1.Service, error) {
		if staysIn(v, tenant) {
			return nameOnly(tenant.Spec.ExternalName), nil
		}
		return desired(v, tenant)
	}
	services.Replace = func(super, desired *corev1.Service) bool {
		return replace(super, desired) || isNameOnly(super) != isNameOnly(desired)
	}
	return services
}

// nameOnly returns the copy of a Service for the shared DNS.
func nameOnly(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Labels: networkLabels(), Annotations: map[string]string{names.ExternalName: name}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, ClusterIPs: []string{corev1.ClusterIPNone},
			// An apiserver's defaults, without which the copy would differ.
			SessionAffinity: corev1.ServiceAffinityNone, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		},
	}
}

func isNameOnly(super *corev1.Service) bool {
	_, is := super.Annotations[names.ExternalName]
	return is
}

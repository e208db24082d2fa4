package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// EndpointSlice is synced down if the tenant wrote it, with the addresses that
// the tenant may direct traffic to. Slices that controllers create for services
// and Endpoints are ignored on both sides: the super cluster's controllers
// create them for the copies, with all labels of these. A slice of names stays
// in the tenant like a Service of type ExternalName.
func EndpointSlice() kinds.Flow {
	return kinds.Down[*discoveryv1.EndpointSlice]{
		Name:     "EndpointSlice",
		Object:   &discoveryv1.EndpointSlice{},
		List:     &discoveryv1.EndpointSliceList{},
		Summary:  "down, if the tenant wrote them",
		Optional: true,
		Selector: without(discoveryv1.LabelManagedBy, selection.NotIn,
			"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"),
		Skip: func(v kinds.View, tenant *discoveryv1.EndpointSlice) bool {
			return tenant.AddressType == discoveryv1.AddressTypeFQDN && !v.Tenant.Policy.AllowExternalNames
		},
		Reserved: names.IsSharedDNSSlice,
		Admit:    admitEndpointSlice,
		Desired:  desiredEndpointSlice,
		Targets:  sliceTargets,
		Omitted: func(v kinds.View, tenant *discoveryv1.EndpointSlice) error {
			_, err := allowedEndpoints(v, tenant)
			return err
		},
		References: func(tenant *discoveryv1.EndpointSlice) []kinds.Reference {
			var refs references
			refs.add(serviceKind, tenant.Labels[discoveryv1.LabelServiceName])
			return refs
		},
		Merge: func(super, desired *discoveryv1.EndpointSlice) {
			super.Endpoints, super.Ports = desired.Endpoints, desired.Ports
		},
		Replace: func(super, desired *discoveryv1.EndpointSlice) bool {
			return super.AddressType != desired.AddressType
		},
	}
}

// without selects objects without a label, or without these values of it.
func without(label string, operator selection.Operator, values ...string) labels.Selector {
	// Well-known labels and values are always a valid requirement.
	r, _ := labels.NewRequirement(label, operator, values)
	return labels.NewSelector().Add(*r)
}

func desiredEndpointSlice(v kinds.View, tenant *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
	own, _ := allowedEndpoints(v, tenant)
	for i := range own {
		translateTarget(v.Tenant, own[i].TargetRef)
	}
	return &discoveryv1.EndpointSlice{AddressType: tenant.AddressType, Endpoints: own, Ports: tenant.DeepCopy().Ports}, nil
}

// admitEndpointSlice rejects a slice without any allowed address.
func admitEndpointSlice(v kinds.View, tenant *discoveryv1.EndpointSlice) error {
	if own, err := allowedEndpoints(v, tenant); len(own) == 0 {
		return err
	}
	return nil
}

// allowedEndpoints returns deep copies of the endpoints with the allowed
// addresses, and an error that names the others.
func allowedEndpoints(v kinds.View, tenant *discoveryv1.EndpointSlice) ([]discoveryv1.Endpoint, error) {
	if err := keptEndpoints(v, tenant, tenant.Labels[discoveryv1.LabelServiceName]); err != nil {
		return nil, err
	}
	may := targets{view: v}
	ports := make([]port, len(tenant.Ports))
	for i, p := range tenant.Ports {
		ports[i] = port{ptr.Deref(p.Protocol, corev1.ProtocolTCP), p.Port}
	}
	var kept []discoveryv1.Endpoint
	for _, endpoint := range tenant.DeepCopy().Endpoints {
		endpoint.Addresses = slices.DeleteFunc(endpoint.Addresses, func(a string) bool { return !may.allows(a, ports) })
		if len(endpoint.Addresses) > 0 {
			kept = append(kept, endpoint)
		}
	}
	return kept, may.err()
}

func sliceTargets(tenant *discoveryv1.EndpointSlice) []string {
	var all []string
	for _, endpoint := range tenant.Endpoints {
		all = append(all, endpoint.Addresses...)
	}
	return all
}

// translateTarget changes a reference to a pod to one to its copy, without the
// UID, which is unknown.
func translateTarget(t translate.Tenant, ref *corev1.ObjectReference) {
	if ref == nil {
		return
	}
	ref.Namespace = t.SuperNamespace(ref.Namespace)
	ref.UID, ref.ResourceVersion = "", ""
}

package resources

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// endpoints are deprecated in favor of EndpointSlices, but old clients still
// write them.
type (
	endpoints      = corev1.Endpoints      //nolint:staticcheck // see above
	endpointsList  = corev1.EndpointsList  //nolint:staticcheck // see above
	endpointSubset = corev1.EndpointSubset //nolint:staticcheck // see above
)

// endpointsManagedBy is the label of objects of the endpoints controller, since
// Kubernetes 1.33.
const endpointsManagedBy = "endpoints.kubernetes.io/managed-by"

// Endpoints are synced down if the tenant wrote them, with the addresses that
// the tenant may direct traffic to. The super cluster mirrors them to
// EndpointSlices, as the tenant does, and creates those of services with
// selectors itself.
func Endpoints() kinds.Flow {
	return kinds.Down[*endpoints]{
		Name:     "Endpoints",
		Object:   &endpoints{},
		List:     &endpointsList{},
		Summary:  "down, if the tenant wrote them",
		Optional: true,
		Selector: without(endpointsManagedBy, selection.DoesNotExist),
		Admit:    admitEndpoints,
		Desired:  desiredEndpoints,
		Merge:    mergeEndpoints,
		Targets:  endpointsTargets,
		Omitted: func(v kinds.View, tenant *endpoints) error {
			_, err := allowedSubsets(v, tenant)
			return err
		},
		References: func(tenant *endpoints) []kinds.Reference {
			// Endpoints belong to the Service of their name, which the platform
			// may have created.
			return []kinds.Reference{{Kind: serviceKind, Name: tenant.Name}}
		},
		Skip:  skipEndpoints,
		Adopt: madeByController,
	}
}

// skipEndpoints skips objects of an endpoints controller before Kubernetes
// 1.33, as far as these can be recognized: for a service without pods, it wrote
// Endpoints without an address, which are useless.
func skipEndpoints(_ kinds.View, tenant *endpoints) bool {
	_, made := tenant.Annotations[corev1.EndpointsLastChangeTriggerTime]
	return made || len(tenant.Subsets) == 0
}

var errSelects = errors.New("the Service of this name selects pods, and its endpoints are found by that; " +
	"remove the selector to write endpoints manually, or add an EndpointSlice")

func desiredEndpoints(v kinds.View, tenant *endpoints) (*endpoints, error) {
	service, _ := v.Lookup(schema.GroupKind{Kind: serviceKind}, v.Tenant.SuperKey(client.ObjectKeyFromObject(tenant)), "").(*corev1.Service)
	if service != nil && len(service.Spec.Selector) > 0 {
		return nil, errSelects
	}
	subsets, _ := allowedSubsets(v, tenant)
	for _, subset := range subsets {
		translateAddresses(v.Tenant, subset.Addresses)
		translateAddresses(v.Tenant, subset.NotReadyAddresses)
	}
	return &endpoints{Subsets: subsets}, nil
}

// admitEndpoints rejects Endpoints without any allowed address.
func admitEndpoints(v kinds.View, tenant *endpoints) error {
	if subsets, err := allowedSubsets(v, tenant); len(subsets) == 0 {
		return err
	}
	return nil
}

// allowedSubsets returns a deep copy of the subsets with the allowed addresses,
// and an error that names the others.
func allowedSubsets(v kinds.View, tenant *endpoints) ([]endpointSubset, error) {
	if err := keptEndpoints(v, tenant, tenant.Name); err != nil {
		return nil, err
	}
	may := targets{view: v}
	var kept []endpointSubset
	for _, subset := range tenant.DeepCopy().Subsets {
		ports := make([]port, len(subset.Ports))
		for i, p := range subset.Ports {
			ports[i] = port{cmp.Or(p.Protocol, corev1.ProtocolTCP), &p.Port}
		}
		refused := func(a corev1.EndpointAddress) bool { return !may.allows(a.IP, ports) }
		subset.Addresses = slices.DeleteFunc(subset.Addresses, refused)
		subset.NotReadyAddresses = slices.DeleteFunc(subset.NotReadyAddresses, refused)
		if len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
			kept = append(kept, subset)
		}
	}
	return kept, may.err()
}

func endpointsTargets(tenant *endpoints) []string {
	var all []string
	for _, subset := range tenant.Subsets {
		for _, addresses := range [][]corev1.EndpointAddress{subset.Addresses, subset.NotReadyAddresses} {
			for _, a := range addresses {
				all = append(all, a.IP)
			}
		}
	}
	return all
}

func translateAddresses(t translate.Tenant, addresses []corev1.EndpointAddress) {
	for i := range addresses {
		translateTarget(t, addresses[i].TargetRef)
	}
}

// madeByController reports whether the super cluster's controller created the
// object. It does not delete its object when a service loses its selector,
// which would block the object that the tenant writes afterwards.
func madeByController(super *endpoints) bool {
	_, now := super.Labels[endpointsManagedBy]
	_, before := super.Annotations[corev1.EndpointsLastChangeTriggerTime]
	return now || before
}

// mergeEndpoints takes over an object of the super cluster's controller.
func mergeEndpoints(super, desired *endpoints) {
	super.Subsets = desired.Subsets
	delete(super.Labels, endpointsManagedBy)
	delete(super.Annotations, corev1.EndpointsLastChangeTriggerTime)
}

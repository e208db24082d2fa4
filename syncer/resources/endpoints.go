package resources

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// endpoints are deprecated for EndpointSlices, which not everybody writes yet.
type (
	endpoints     = corev1.Endpoints     //nolint:staticcheck // see above
	endpointsList = corev1.EndpointsList //nolint:staticcheck // see above
)

// endpointsManagedBy is the label of what the endpoints controller made, since Kubernetes 1.33.
const endpointsManagedBy = "endpoints.kubernetes.io/managed-by"

// Endpoints flow down if the tenant wrote them. The super cluster makes EndpointSlices of them, as the tenant does, and by itself
// those of services that select pods.
func Endpoints() engine.Kind {
	return engine.Down[*endpoints]{
		Name:     "Endpoints",
		Object:   &endpoints{},
		List:     &endpointsList{},
		Selector: without(endpointsManagedBy, selection.DoesNotExist),
		Desired:  desiredEndpoints,
		Merge:    mergeEndpoints,
		Skip:     skipEndpoints,
		Adopt:    madeByController,
	}
}

// skipEndpoints leaves alone what an endpoints controller made before Kubernetes 1.33, as far as that can be told: of a service without
// pods, it wrote Endpoints without an address, which nobody needs.
func skipEndpoints(_ engine.View, tenant *endpoints) bool {
	_, made := tenant.Annotations[corev1.EndpointsLastChangeTriggerTime]
	return made || len(tenant.Subsets) == 0
}

var errSelects = errors.New("the Service of this name selects pods, and its endpoints are found by that; " +
	"take the selector away to write endpoints by hand, or write an EndpointSlice beside it")

func desiredEndpoints(v engine.View, tenant *endpoints) (*endpoints, error) {
	service, _ := v.Lookup(schema.GroupKind{Kind: "Service"}, v.Tenant.SuperKey(client.ObjectKeyFromObject(tenant)), "").(*corev1.Service)
	if service != nil && len(service.Spec.Selector) > 0 {
		return nil, errSelects
	}
	super := &endpoints{Subsets: tenant.DeepCopy().Subsets}
	for _, subset := range super.Subsets {
		translateAddresses(v.Tenant, subset.Addresses)
		translateAddresses(v.Tenant, subset.NotReadyAddresses)
	}
	return super, nil
}

func translateAddresses(t translate.Tenant, addresses []corev1.EndpointAddress) {
	for i := range addresses {
		translateTarget(t, addresses[i].TargetRef)
	}
}

// madeByController says whether the super cluster's controller made Endpoints. Those of the time when a service selected pods stay,
// and would be in the way of what the tenant writes afterwards.
func madeByController(super *endpoints) bool {
	_, now := super.Labels[endpointsManagedBy]
	_, before := super.Annotations[corev1.EndpointsLastChangeTriggerTime]
	return now || before
}

// mergeEndpoints takes over what the super cluster's controller made before.
func mergeEndpoints(super, desired *endpoints) {
	super.Subsets = desired.Subsets
	delete(super.Labels, endpointsManagedBy)
	delete(super.Annotations, corev1.EndpointsLastChangeTriggerTime)
}

package resources

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// EndpointSlice flows down if the tenant wrote it. What controllers make of services and of Endpoints, those of the super cluster make
// there of the copies, with all that the copies carry; so it is not looked at on either side. One of names stays in the tenant like a
// Service that is a name for another.
func EndpointSlice() engine.Kind {
	return engine.Down[*discoveryv1.EndpointSlice]{
		Name:   "EndpointSlice",
		Object: &discoveryv1.EndpointSlice{},
		List:   &discoveryv1.EndpointSliceList{},
		Selector: without(discoveryv1.LabelManagedBy, selection.NotIn,
			"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"),
		Skip: func(v engine.View, tenant *discoveryv1.EndpointSlice) bool {
			return tenant.AddressType == discoveryv1.AddressTypeFQDN && !v.Tenant.Policy.AllowExternalNames
		},
		Desired: desiredEndpointSlice,
		Merge: func(super, desired *discoveryv1.EndpointSlice) {
			super.Endpoints, super.Ports = desired.Endpoints, desired.Ports
		},
		Replace: func(super, desired *discoveryv1.EndpointSlice) bool {
			return super.AddressType != desired.AddressType
		},
	}
}

// without selects what does not have a label, or not with these values.
func without(label string, operator selection.Operator, values ...string) labels.Selector {
	// Well-known labels and values are always a valid requirement.
	r, _ := labels.NewRequirement(label, operator, values)
	return labels.NewSelector().Add(*r)
}

func desiredEndpointSlice(v engine.View, tenant *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
	own := tenant.DeepCopy()
	for i := range own.Endpoints {
		translateTarget(v.Tenant, own.Endpoints[i].TargetRef)
	}
	return &discoveryv1.EndpointSlice{AddressType: own.AddressType, Endpoints: own.Endpoints, Ports: own.Ports}, nil
}

// translateTarget has a reference to a pod be one to its copy, of which the UID is not known.
func translateTarget(t translate.Tenant, ref *corev1.ObjectReference) {
	if ref == nil {
		return
	}
	ref.Namespace = t.SuperNamespace(ref.Namespace)
	ref.UID, ref.ResourceVersion = "", ""
}

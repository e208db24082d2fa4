package stored

import tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

// LimitsOf returns how much a tenant may store: the limits of its VirtualCluster,
// and the given ones where it has none.
func LimitsOf(vc *tenancyv1alpha1.VirtualCluster, most Amount) Amount {
	if vc.Spec.ControlPlane == nil || vc.Spec.ControlPlane.Limits == nil {
		return most
	}
	limits := vc.Spec.ControlPlane.Limits
	if limits.Objects != nil {
		most.Objects = *limits.Objects
	}
	if limits.Storage != nil {
		most.Bytes = limits.Storage.Value()
	}
	return most
}

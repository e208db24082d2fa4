package resources

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// PodDisruptionBudget is synced down, so that the super cluster's drains
// respect it. Its status is not synced up: the tenant's own controller counts
// the tenant's pods and decides about evictions there, and two writers would
// conflict.
func PodDisruptionBudget() kinds.Flow {
	return kinds.Down[*policyv1.PodDisruptionBudget]{
		Name:     "PodDisruptionBudget",
		Object:   &policyv1.PodDisruptionBudget{},
		List:     &policyv1.PodDisruptionBudgetList{},
		Summary:  "down, so that drains respect it",
		Optional: true,
		Desired:  desiredBudget,
		Merge:    func(super, desired *policyv1.PodDisruptionBudget) { super.Spec = desired.Spec },
	}
}

// desiredBudget returns a budget with a number of pods. A percentage, or a
// maximum of unavailable pods, is relative to the scale of the pods' owners,
// which exist in the tenant: the super cluster would count none and never allow
// an eviction. The tenant's controller has counted them. If it has not, or
// found no owner, the copy has the spec of the tenant's object, and allows no
// evictions.
func desiredBudget(v kinds.View, tenant *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudget, error) {
	if err := checkSize(sizeOf(tenant.Spec.Selector)); err != nil {
		return nil, err
	}
	spec, status := tenant.Spec.DeepCopy(), tenant.Status
	relative := spec.MaxUnavailable != nil || spec.MinAvailable != nil && spec.MinAvailable.Type == intstr.String
	if counted := status.ObservedGeneration == tenant.Generation && status.ExpectedPods > 0; relative && counted {
		spec.MinAvailable, spec.MaxUnavailable = new(intstr.FromInt32(status.DesiredHealthy)), nil
	}
	spec.Selector = v.Tenant.PodSelector(spec.Selector)
	return &policyv1.PodDisruptionBudget{Spec: *spec}, nil
}

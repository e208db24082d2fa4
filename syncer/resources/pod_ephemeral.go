package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
)

// mergeEphemeralContainers adds the containers that were added to a tenant's pod to look around with. Those that are there
// cannot be changed or taken away (Pod validation).
func mergeEphemeralContainers(v engine.View, super, tenant *corev1.Pod) {
	fields := fieldsFor(v.Tenant, tenant)
	for i := range tenant.Spec.EphemeralContainers {
		added := tenant.Spec.EphemeralContainers[i].DeepCopy()
		there := func(c corev1.EphemeralContainer) bool { return c.Name == added.Name }
		if slices.ContainsFunc(super.Spec.EphemeralContainers, there) {
			continue
		}
		translateContainer((*corev1.Container)(&added.EphemeralContainerCommon), fields)
		super.Spec.EphemeralContainers = append(super.Spec.EphemeralContainers, *added)
	}
}

// eachEphemeralContainer are copies of a pod with one each of the containers that were added to it. One that is refused stays in the
// tenant's pod for good, since nobody can take it away there, and must not keep out those that come after it.
func eachEphemeralContainer(super, merged *corev1.Pod) []*corev1.Pod {
	var each []*corev1.Pod
	for i := len(super.Spec.EphemeralContainers); i < len(merged.Spec.EphemeralContainers); i++ {
		one := super.DeepCopy()
		one.Spec.EphemeralContainers = append(one.Spec.EphemeralContainers, *merged.Spec.EphemeralContainers[i].DeepCopy())
		each = append(each, one)
	}
	return each
}

package resources

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// mergeEphemeralContainers adds new ephemeral containers of a tenant's pod.
// Existing ones cannot be changed or removed (Pod validation).
func mergeEphemeralContainers(v kinds.View, super, tenant *corev1.Pod) {
	fields := fieldsFor(v.Tenant, tenant)
	for i := range newEphemeralContainers(super, tenant) {
		if admitEphemeralContainer(v, tenant, i) != nil {
			continue
		}
		added := tenant.Spec.EphemeralContainers[i].DeepCopy()
		translateContainer((*corev1.Container)(&added.EphemeralContainerCommon), fields)
		super.Spec.EphemeralContainers = append(super.Spec.EphemeralContainers, *added)
	}
}

// newEphemeralContainers returns the indexes of ephemeral containers of a
// tenant's pod that are not in its copy.
func newEphemeralContainers(super, tenant *corev1.Pod) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range tenant.Spec.EphemeralContainers {
			there := func(c corev1.EphemeralContainer) bool { return c.Name == tenant.Spec.EphemeralContainers[i].Name }
			if !slices.ContainsFunc(super.Spec.EphemeralContainers, there) && !yield(i) {
				return
			}
		}
	}
}

// admitEphemeralContainers rejects ephemeral containers that a new pod could
// not have. Others are synced down.
func admitEphemeralContainers(v kinds.View, super, tenant *corev1.Pod) error {
	for i := range newEphemeralContainers(super, tenant) {
		if why := admitEphemeralContainer(v, tenant, i); why != nil {
			return why
		}
	}
	return nil
}

func admitEphemeralContainer(v kinds.View, tenant *corev1.Pod, i int) error {
	if mayUseNodeProfiles(v.Tenant.Policy) {
		return nil
	}
	return admitContainerProfiles(ephemeralPath(i), (*corev1.Container)(&tenant.Spec.EphemeralContainers[i].EphemeralContainerCommon))
}

// eachEphemeralContainer returns deep copies of a pod with one of the new
// ephemeral containers each. A rejected one stays in the tenant's pod for ever,
// since it cannot be removed there, and must not block later ones.
func eachEphemeralContainer(super, merged *corev1.Pod) []*corev1.Pod {
	var each []*corev1.Pod
	for i := len(super.Spec.EphemeralContainers); i < len(merged.Spec.EphemeralContainers); i++ {
		one := super.DeepCopy()
		one.Spec.EphemeralContainers = append(one.Spec.EphemeralContainers, *merged.Spec.EphemeralContainers[i].DeepCopy())
		each = append(each, one)
	}
	return each
}

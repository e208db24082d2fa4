package resources

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// podStatus copies the status of the copy, without the super cluster's names.
// The observed generation is that of the copy, and becomes the tenant's when
// the copy is up to date.
func podStatus(v kinds.View, tenant, super *corev1.Pod) {
	observed := tenant.Status.ObservedGeneration
	if super.Status.ObservedGeneration == super.Generation {
		observed = tenant.Generation
	}
	status := super.Status.DeepCopy()
	status.ObservedGeneration = observed
	status.Message = v.Tenant.Text(status.Message, v.Namespace)
	status.Conditions = shownConditions(v, tenant, super, observed)
	keepOwnStatus(status, &tenant.Status)
	own := containerNames(&tenant.Spec)
	status.InitContainerStatuses = shownContainers(v, own, status.InitContainerStatuses)
	status.ContainerStatuses = shownContainers(v, own, status.ContainerStatuses)
	status.EphemeralContainerStatuses = shownContainers(v, own, status.EphemeralContainerStatuses)
	tenant.Status = *status
}

// keepOwnStatus keeps the fields that the tenant's cluster decides.
func keepOwnStatus(status, own *corev1.PodStatus) {
	// It is immutable (Pod validation). The super cluster's differs if its
	// admission added resources to the copy.
	status.QOSClass = cmp.Or(own.QOSClass, status.QOSClass)
	// A nominated node is not decided yet, and is of no concern to the tenant.
	status.NominatedNodeName = ""
	// Each side creates claims from templates itself, with different names.
	status.ResourceClaimStatuses = own.ResourceClaimStatuses
	status.ExtendedResourceClaimStatus = own.ExtendedResourceClaimStatus
	status.NodeAllocatableResourceClaimStatuses = own.NodeAllocatableResourceClaimStatuses
}

// containerNames returns the names of all containers of a pod.
func containerNames(spec *corev1.PodSpec) sets.Set[string] {
	all := sets.New[string]()
	for c := range containersOf(spec) {
		all.Insert(c.Name)
	}
	return all
}

// shownContainers returns the statuses of the containers of the tenant's pod,
// without the super cluster's names, and without those of containers that its
// admission added. It modifies statuses.
func shownContainers(v kinds.View, own sets.Set[string], statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	statuses = slices.DeleteFunc(statuses, func(s corev1.ContainerStatus) bool { return !own.Has(s.Name) })
	for i := range statuses {
		for _, state := range []*corev1.ContainerState{&statuses[i].State, &statuses[i].LastTerminationState} {
			if state.Waiting != nil {
				state.Waiting.Message = v.Tenant.Text(state.Waiting.Message, v.Namespace)
			}
			if state.Terminated != nil {
				state.Terminated.Message = v.Tenant.Text(state.Terminated.Message, v.Namespace)
			}
		}
	}
	return statuses
}

// samePodStatus compares statuses except for the times of conditions, which
// alone are not worth a request.
func samePodStatus(a, b *corev1.Pod) bool {
	return wire.Equal(timeless(a.Status), timeless(b.Status))
}

// timeless returns a status without the times of its conditions.
func timeless(status corev1.PodStatus) *corev1.PodStatus {
	conditions := make([]corev1.PodCondition, len(status.Conditions))
	for i, c := range status.Conditions {
		c.LastTransitionTime, c.LastProbeTime, c.ObservedGeneration = metav1.Time{}, metav1.Time{}, 0
		conditions[i] = c
	}
	status.Conditions = conditions
	return &status
}

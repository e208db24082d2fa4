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

// podStatus shows the tenant the status of the copy, without the super cluster's names. The generation that the status
// speaks of is the copy's own and is told in the tenant's count only when the copy has caught up.
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

// keepOwnStatus keeps what the tenant's cluster says of a pod by itself.
func keepOwnStatus(status, own *corev1.PodStatus) {
	// The super cluster's may be another one, if its admission gave the copy resources. It cannot be changed (Pod validation).
	status.QOSClass = cmp.Or(own.QOSClass, status.QOSClass)
	// A node that is not decided on yet is the super cluster's own affair.
	status.NominatedNodeName = ""
	// Each side makes claims of templates by itself, under names of its own.
	status.ResourceClaimStatuses = own.ResourceClaimStatuses
	status.ExtendedResourceClaimStatus = own.ExtendedResourceClaimStatus
	status.NodeAllocatableResourceClaimStatuses = own.NodeAllocatableResourceClaimStatuses
}

// containerNames are the names of a pod's containers, of whichever sort.
func containerNames(spec *corev1.PodSpec) sets.Set[string] {
	all := sets.New[string]()
	for c := range containersOf(spec) {
		all.Insert(c.Name)
	}
	return all
}

// shownContainers are the statuses of the containers that the tenant's pod has, and not of those that the super cluster's
// admission added, without the super cluster's names. They are the slice that is given.
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

// samePodStatus compares statuses as a reader would: when a condition of the same status last changed is not worth a request
// of its own.
func samePodStatus(a, b *corev1.Pod) bool {
	return wire.Equal(timeless(a.Status), timeless(b.Status))
}

// timeless is a status without the times of its conditions.
func timeless(status corev1.PodStatus) *corev1.PodStatus {
	conditions := make([]corev1.PodCondition, len(status.Conditions))
	for i, c := range status.Conditions {
		c.LastTransitionTime, c.LastProbeTime, c.ObservedGeneration = metav1.Time{}, metav1.Time{}, 0
		conditions[i] = c
	}
	status.Conditions = conditions
	return &status
}

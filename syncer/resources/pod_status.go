package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// podStatus shows the tenant the status of the copy, without the super cluster's names. The generation that the status
// speaks of is the copy's own and is told in the tenant's count only when the copy has caught up.
func podStatus(v engine.View, tenant, super *corev1.Pod) {
	t := v.Tenant
	observed := tenant.Status.ObservedGeneration
	if super.Status.ObservedGeneration == super.Generation {
		observed = tenant.Generation
	}
	status := super.Status.DeepCopy()
	status.ObservedGeneration = observed
	status.NominatedNodeName = ""
	// Each side makes claims of templates by itself, under names of its own.
	status.ResourceClaimStatuses = tenant.Status.ResourceClaimStatuses
	status.ExtendedResourceClaimStatus = tenant.Status.ExtendedResourceClaimStatus
	status.Message = t.Text(status.Message, tenant.Namespace)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.Message = t.Text(c.Message, tenant.Namespace)
		c.ObservedGeneration = min(c.ObservedGeneration, observed)
	}
	cleanContainers(t, tenant.Namespace, status.InitContainerStatuses)
	cleanContainers(t, tenant.Namespace, status.ContainerStatuses)
	cleanContainers(t, tenant.Namespace, status.EphemeralContainerStatuses)
	tenant.Status = *status
}

// cleanContainers takes the super cluster's names out of what the node says about containers.
func cleanContainers(t translate.Tenant, namespace string, statuses []corev1.ContainerStatus) {
	for i := range statuses {
		for _, state := range []*corev1.ContainerState{&statuses[i].State, &statuses[i].LastTerminationState} {
			if state.Waiting != nil {
				state.Waiting.Message = t.Text(state.Waiting.Message, namespace)
			}
			if state.Terminated != nil {
				state.Terminated.Message = t.Text(state.Terminated.Message, namespace)
			}
		}
	}
}

// samePodStatus compares statuses as a reader would: when a condition of the same status last changed is not worth a request
// of its own.
func samePodStatus(a, b *corev1.Pod) bool {
	return semanticEqual(timeless(a.Status), timeless(b.Status))
}

func timeless(status corev1.PodStatus) corev1.PodStatus {
	conditions := make([]corev1.PodCondition, len(status.Conditions))
	for i, c := range status.Conditions {
		c.LastTransitionTime, c.LastProbeTime, c.ObservedGeneration = metav1.Time{}, metav1.Time{}, 0
		conditions[i] = c
	}
	status.Conditions = conditions
	return status
}

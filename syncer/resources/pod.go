package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Pod flows down when it is made and up while it runs: its node, its status, and its end.
func Pod() engine.Kind {
	return engine.Down[*corev1.Pod]{
		Name:       "Pod",
		Object:     &corev1.Pod{},
		List:       &corev1.PodList{},
		Desired:    desiredPod,
		Merge:      mergePod,
		References: podReferences,
		Status:     podStatus,
		Same:       samePodStatus,
		Mirror: &engine.Mirror[*corev1.Pod]{
			Started:            func(tenant *corev1.Pod) bool { return tenant.Spec.NodeName != "" && scheduled(tenant) },
			Node:               func(pod *corev1.Pod) string { return pod.Spec.NodeName },
			Bound:              boundPod,
			GracePeriodSeconds: func(pod *corev1.Pod) *int64 { return pod.DeletionGracePeriodSeconds },
		},
	}
}

// scheduled says whether a pod was bound to its node by a binding, and did not name the node by itself.
func scheduled(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// boundPod is a pod as the apiserver leaves it after a binding.
func boundPod(pod *corev1.Pod, node string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.NodeName = node
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			c.Status = corev1.ConditionTrue
			return pod
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
	})
	return pod
}

// mergePod takes what can be changed in a pod that exists (Pod update validation): images, the deadline, and tolerations that
// are added.
func mergePod(super, desired *corev1.Pod) {
	mergeImages(super.Spec.Containers, desired.Spec.Containers)
	mergeImages(super.Spec.InitContainers, desired.Spec.InitContainers)
	super.Spec.ActiveDeadlineSeconds = desired.Spec.ActiveDeadlineSeconds
	for _, t := range desired.Spec.Tolerations {
		if !hasToleration(super.Spec.Tolerations, t) {
			super.Spec.Tolerations = append(super.Spec.Tolerations, t)
		}
	}
}

func mergeImages(super, desired []corev1.Container) {
	images := make(map[string]string, len(desired))
	for _, c := range desired {
		images[c.Name] = c.Image
	}
	for i := range super {
		if image, ok := images[super[i].Name]; ok {
			super[i].Image = image
		}
	}
}

func hasToleration(in []corev1.Toleration, t corev1.Toleration) bool {
	for i := range in {
		if in[i].MatchToleration(&t) {
			return true
		}
	}
	return false
}

// podStatus shows the tenant the status of the copy, without the super cluster's names. The generation that the status
// speaks of is the copy's own and is told in the tenant's count only when the copy has caught up.
func podStatus(t translate.Tenant, tenant, super *corev1.Pod) {
	observed := tenant.Status.ObservedGeneration
	if super.Status.ObservedGeneration == super.Generation {
		observed = tenant.Generation
	}
	status := super.Status.DeepCopy()
	status.ObservedGeneration = observed
	status.NominatedNodeName = ""
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
	status.ObservedGeneration = 0
	return status
}

package resources

import (
	"maps"
	"slices"

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
	if scheduled(pod) {
		return pod
	}
	unscheduled := func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled }
	pod.Status.Conditions = append(slices.DeleteFunc(pod.Status.Conditions, unscheduled), corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
	})
	return pod
}

// mergePod takes what can be changed in a pod that exists (Pod update validation): images, the deadline, tolerations that are
// added or last longer, and, while gates keep it from being scheduled, fewer gates and a narrower choice of nodes.
func mergePod(super, desired *corev1.Pod) {
	mergeImages(super.Spec.Containers, desired.Spec.Containers)
	mergeImages(super.Spec.InitContainers, desired.Spec.InitContainers)
	super.Spec.ActiveDeadlineSeconds = desired.Spec.ActiveDeadlineSeconds
	for _, t := range desired.Spec.Tolerations {
		mergeToleration(&super.Spec, t)
	}
	if len(super.Spec.SchedulingGates) > 0 {
		mergeGated(&super.Spec, &desired.Spec)
	}
}

// mergeGated takes what can be changed in a pod that waits for its gates. A node selector can only grow.
func mergeGated(super, desired *corev1.PodSpec) {
	super.SchedulingGates = slices.DeleteFunc(super.SchedulingGates, func(gate corev1.PodSchedulingGate) bool {
		return !slices.Contains(desired.SchedulingGates, gate)
	})
	if super.NodeSelector == nil {
		super.NodeSelector = map[string]string{}
	}
	maps.Copy(super.NodeSelector, desired.NodeSelector)
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

// mergeToleration adds a toleration, or changes how long one that is there lasts.
func mergeToleration(super *corev1.PodSpec, t corev1.Toleration) {
	same := func(have corev1.Toleration) bool { return semanticEqual(have, t) }
	if slices.ContainsFunc(super.Tolerations, same) {
		return
	}
	alike := func(have corev1.Toleration) bool { return have.MatchToleration(&t) }
	if i := slices.IndexFunc(super.Tolerations, alike); i >= 0 {
		super.Tolerations[i] = t
		return
	}
	super.Tolerations = append(super.Tolerations, t)
}

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

package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
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
			Ended:              podEnded,
			Bound:              boundPod,
			GracePeriodSeconds: func(pod *corev1.Pod) *int64 { return pod.DeletionGracePeriodSeconds },
		},
	}
}

// podEnded says whether a pod has run and will not run again.
func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
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

package resources

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Pod is synced down on creation; its node, status and deletion are synced up.
// Later changes are synced down by subresources: ephemeral containers,
// resources, and conditions that the tenant's controllers set as readiness
// gates.
func Pod() kinds.Flow {
	return kinds.Down[*corev1.Pod]{
		Name:       podKind.Kind,
		Object:     &corev1.Pod{},
		List:       &corev1.PodList{},
		Summary:    "spec down on creation; node, status and deletion up",
		Admit:      admitPod,
		Desired:    desiredPod,
		Merge:      mergePod,
		References: podReferences,
		Tokens:     podTokens,
		Subresources: []kinds.Subresource[*corev1.Pod]{
			{Name: "ephemeralcontainers", Admit: admitEphemeralContainers, Merge: mergeEphemeralContainers, Parts: eachEphemeralContainer},
			{Name: "resize", Merge: mergeResources},
			{Name: "status", Merge: mergeGateConditions},
		},
		Status:  podStatus,
		Same:    samePodStatus,
		Pending: podPending,
		Mirror: &kinds.Mirror[*corev1.Pod]{
			Started:            started,
			Node:               func(pod *corev1.Pod) string { return pod.Spec.NodeName },
			Running:            func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning },
			Ended:              podEnded,
			Bound:              boundPod,
			GracePeriodSeconds: func(pod *corev1.Pod) *int64 { return pod.DeletionGracePeriodSeconds },
			Addresses:          podAddresses,
		},
	}
}

// podEnded reports whether a pod has run to completion.
func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// podAddresses returns the addresses that only this pod has: a pod in the host
// network shares the node's, and the addresses of a completed pod may be
// reused.
func podAddresses(super *corev1.Pod) []string {
	if super.Spec.HostNetwork || podEnded(super) {
		return nil
	}
	all := make([]string, 0, len(super.Status.PodIPs)+1)
	if super.Status.PodIP != "" {
		all = append(all, super.Status.PodIP)
	}
	for _, ip := range super.Status.PodIPs {
		if ip.IP != super.Status.PodIP {
			all = append(all, ip.IP)
		}
	}
	return all
}

// started reports whether a pod is on a node because its copy is: it was bound
// to the node or, if its spec named the node, has a start time.
func started(tenant *corev1.Pod) bool {
	return tenant.Spec.NodeName != "" && (scheduled(tenant) || tenant.Status.StartTime != nil)
}

// scheduled reports whether a pod was bound to its node by a binding, and not
// by its spec.
func scheduled(pod *corev1.Pod) bool {
	c := findCondition(pod.Status.Conditions, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionTrue
}

// boundPod returns a pod in the state after its binding.
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

// containersOf returns all containers of a pod: init containers, containers and
// ephemeral containers.
func containersOf(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, c := range containersAt(spec) {
			if !yield(c) {
				return
			}
		}
	}
}

// containersAt returns all containers of a pod with their paths.
func containersAt(spec *corev1.PodSpec) iter.Seq2[*field.Path, *corev1.Container] {
	return func(yield func(*field.Path, *corev1.Container) bool) {
		for _, group := range []struct {
			name       string
			containers []corev1.Container
		}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
			for i := range group.containers {
				if !yield(specPath.Child(group.name).Index(i), &group.containers[i]) {
					return
				}
			}
		}
		for i := range spec.EphemeralContainers {
			if !yield(ephemeralPath(i), (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

// ephemeralPath returns the path of an ephemeral container.
func ephemeralPath(i int) *field.Path { return specPath.Child("ephemeralContainers").Index(i) }

package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// mergePod merges the mutable fields of a pod (Pod update validation): images,
// an earlier deadline, tolerations that are added or extended, the labels for
// pods that the tenant's policies select, and, while the pod has scheduling
// gates, fewer gates and a narrower node selection.
func mergePod(super, desired *corev1.Pod) {
	for _, label := range []string{names.OwnIngress, names.OwnEgress} {
		if _, wanted := desired.Labels[label]; !wanted {
			delete(super.Labels, label)
		}
	}
	mergeImages(super.Spec.Containers, desired.Spec.Containers)
	mergeImages(super.Spec.InitContainers, desired.Spec.InitContainers)
	mergeDeadline(&super.Spec, &desired.Spec)
	for _, t := range desired.Spec.Tolerations {
		mergeToleration(&super.Spec, t)
	}
	if len(super.Spec.SchedulingGates) > 0 {
		mergeGated(super, desired)
	}
}

// mergeDeadline applies a deadline that is earlier than the current one.
func mergeDeadline(super, desired *corev1.PodSpec) {
	have, want := super.ActiveDeadlineSeconds, desired.ActiveDeadlineSeconds
	if want != nil && (have == nil || *want < *have) {
		super.ActiveDeadlineSeconds = new(*want)
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

// mergeToleration adds a toleration, or changes the duration of an existing
// one.
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

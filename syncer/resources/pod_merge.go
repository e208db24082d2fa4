package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// mergePod takes what can be changed in a pod that exists (Pod update validation): images, a deadline that is nearer, tolerations
// that are added or last longer, whether the tenant's policies say who comes in, and, while gates keep it from being scheduled, fewer
// gates and a narrower choice of nodes.
func mergePod(super, desired *corev1.Pod) {
	if _, wanted := desired.Labels[names.OwnIngress]; !wanted {
		delete(super.Labels, names.OwnIngress)
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

// mergeDeadline takes a deadline that is nearer than the one there is.
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

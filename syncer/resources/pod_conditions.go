package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// kubeletConditions are the conditions that the kubelet sets and removes.
var kubeletConditions = []corev1.PodConditionType{
	corev1.PodReady,
	corev1.PodInitialized,
	corev1.ContainersReady,
	corev1.PodReadyToStartContainers,
	corev1.PodResizePending,
	corev1.PodResizeInProgress,
	corev1.AllContainersRestarting,
}

// findCondition returns a pointer to the condition of a type; nil if there is
// none.
func findCondition(conditions []corev1.PodCondition, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}

// podPending sets the condition that a pod is not scheduled, with the reason why
// it has no copy.
func podPending(pod *corev1.Pod, reason, message string) {
	pending := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	}
	c := findCondition(pod.Status.Conditions, corev1.PodScheduled)
	if c == nil {
		pod.Status.Conditions = append(pod.Status.Conditions, pending)
		return
	}
	if c.Status == pending.Status {
		pending.LastTransitionTime = c.LastTransitionTime
	}
	*c = pending
}

// isGate reports whether a condition is a readiness gate of the pod that
// neither the kubelet nor the control plane sets.
func isGate(spec *corev1.PodSpec, kind corev1.PodConditionType) bool {
	if slices.Contains(kubeletConditions, kind) || kind == corev1.PodScheduled || kind == corev1.DisruptionTarget {
		return false
	}
	return slices.Contains(spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: kind})
}

// shownConditions returns the conditions for the tenant's pod: those of the
// copy, and those that only the tenant's pod has and that were set by a
// controller in the tenant, unless the kubelet has removed them. Of a gate that
// both have, the one that prevails is used. No condition has a later observed
// generation than the status.
func shownConditions(v kinds.View, tenant, super *corev1.Pod, observed int64) []corev1.PodCondition {
	shown := make([]corev1.PodCondition, 0, len(super.Status.Conditions))
	for _, c := range super.Status.Conditions {
		c.Message = v.Tenant.Text(c.Message, v.Namespace)
		c.ObservedGeneration = min(c.ObservedGeneration, observed)
		own := findCondition(tenant.Status.Conditions, c.Type)
		if own != nil && isGate(&tenant.Spec, c.Type) && !overrules(c, *own) {
			c = *own
		}
		shown = append(shown, c)
	}
	for _, own := range tenant.Status.Conditions {
		if findCondition(super.Status.Conditions, own.Type) == nil && !slices.Contains(kubeletConditions, own.Type) {
			shown = append(shown, own)
		}
	}
	return shown
}

// mergeGateConditions copies the gates that the tenant's controllers set to the
// copy, where the kubelet reads them.
func mergeGateConditions(v kinds.View, super, tenant *corev1.Pod) {
	for _, own := range tenant.Status.Conditions {
		if !isGate(&tenant.Spec, own.Type) {
			continue
		}
		own.ObservedGeneration = 0 // counts changes of the tenant's pod
		there := findCondition(super.Status.Conditions, own.Type)
		if there == nil {
			super.Status.Conditions = append(super.Status.Conditions, own)
			continue
		}
		shown := *there
		shown.Message = v.Tenant.Text(shown.Message, v.Namespace)
		if sameCondition(shown, own) || overrules(shown, own) {
			continue
		}
		own.ObservedGeneration = there.ObservedGeneration
		*there = own
	}
}

// overrules reports whether the copy's condition, as it is shown, prevails over
// the tenant's: it differs, and has changed later. If one of them has no
// transition time, the tenant's prevails. The one that prevails is written to
// the other side unchanged, including its time, so that both sides are stable
// then.
func overrules(shown, own corev1.PodCondition) bool {
	return !sameCondition(shown, own) && !own.LastTransitionTime.IsZero() && shown.LastTransitionTime.After(own.LastTransitionTime.Time)
}

// sameCondition reports whether conditions are equal except for their times.
func sameCondition(a, b corev1.PodCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// kubeletConditions are what the node says about a pod, also by taking a condition away.
var kubeletConditions = []corev1.PodConditionType{
	corev1.PodReady,
	corev1.PodInitialized,
	corev1.ContainersReady,
	corev1.PodReadyToStartContainers,
	corev1.PodResizePending,
	corev1.PodResizeInProgress,
	corev1.AllContainersRestarting,
}

// findCondition returns the condition of a type, in its place; nil if there is none.
func findCondition(conditions []corev1.PodCondition, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}

// podHeld says in a pod that it waits, and not for a node.
func podHeld(pod *corev1.Pod, reason, message string) {
	held := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	}
	c := findCondition(pod.Status.Conditions, corev1.PodScheduled)
	if c == nil {
		pod.Status.Conditions = append(pod.Status.Conditions, held)
		return
	}
	if c.Status == held.Status {
		held.LastTransitionTime = c.LastTransitionTime
	}
	*c = held
}

// isGate says whether a condition is one that the pod waits for before it is ready, and that somebody sets who is not the
// cluster itself.
func isGate(spec *corev1.PodSpec, kind corev1.PodConditionType) bool {
	if slices.Contains(kubeletConditions, kind) || kind == corev1.PodScheduled || kind == corev1.DisruptionTarget {
		return false
	}
	return slices.Contains(spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: kind})
}

// shownConditions are the conditions that the tenant sees, and what of its own stays. The copy's come up. Of a gate that both
// have, the one that holds does. What only the tenant has was set by a controller of its own, and stays, unless it is something
// that the node once said and has taken back. None speaks of a generation that the status does not.
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

// mergeGateConditions brings the gates that the tenant's controllers set to the copy, where the node reads them.
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
		if sayTheSame(shown, own) || overrules(shown, own) {
			continue
		}
		own.ObservedGeneration = there.ObservedGeneration
		*there = own
	}
}

// overrules says whether the copy's condition, as it is shown, holds against the tenant's: it says something else, and has
// changed later. Where one of them does not tell when it changed, the tenant's holds. Whichever holds is written to the other
// side as it is, time and all, so that both are at rest then.
func overrules(shown, own corev1.PodCondition) bool {
	return !sayTheSame(shown, own) && !own.LastTransitionTime.IsZero() && shown.LastTransitionTime.After(own.LastTransitionTime.Time)
}

// sayTheSame says whether conditions differ in nothing but when they were written.
func sayTheSame(a, b corev1.PodCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

package engine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// concern is how much a change in the super cluster concerns a tenant whose
// control plane sleeps.
type concern int

const (
	unconcerned concern = iota
	// statusChanged: the tenant would read another status.
	statusChanged
	// ended: an object that lives as long as its copy, such as a pod, has ended
	// or is being deleted. The tenant may have to replace it.
	ended
)

// tell tells of a change of a copy that its tenant has to see even if its
// control plane sleeps; was or now is nil if the copy was created or deleted.
//
// An engaged tenant may be about to sleep, and its requests dropped, so that it
// is notified of ends, too.
func (e *superEvents) tell(k *kinds.Kind, was, now client.Object, engaged bool) {
	if e.changed == nil {
		return
	}
	concerned := concernOf(k, was, now)
	if concerned == unconcerned || engaged && concerned == statusChanged {
		return
	}
	obj, at := now, time.Now()
	if now == nil {
		obj = was
	} else if was == nil {
		at = lastChange(now) // it may have been so for long
	}
	if tenant := translate.OriginOf(obj).Cluster; tenant != "" {
		e.changed(tenant, at, concerned == ended)
	}
}

// concernOf returns how much a change of a copy concerns its tenant.
func concernOf(k *kinds.Kind, was, now client.Object) concern {
	m := k.Down.Mirror
	hasEnded := func(obj client.Object) bool { return m.Ended(obj) || obj.GetDeletionTimestamp() != nil }
	switch {
	case m != nil && now == nil:
		return ended
	case m != nil && hasEnded(now) && (was == nil || !hasEnded(was)):
		return ended
	case now == nil:
		return statusChanged
	case was == nil:
		if m == nil {
			return unconcerned
		}
		return statusChanged
	case k.Down.Same != nil && !k.Down.Same(was, now):
		return statusChanged
	default:
		return unconcerned
	}
}

// lastChange returns when the status of a pod last changed, as far as it says;
// zero for other objects.
func lastChange(obj client.Object) time.Time {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return time.Time{}
	}
	last := time.Time{}
	note := func(at time.Time) {
		if at.After(last) {
			last = at
		}
	}
	if pod.DeletionTimestamp != nil {
		note(pod.DeletionTimestamp.Time)
	}
	for _, condition := range pod.Status.Conditions {
		note(condition.LastTransitionTime.Time)
	}
	for _, container := range pod.Status.ContainerStatuses {
		if running := container.State.Running; running != nil {
			note(running.StartedAt.Time)
		}
		if terminated := container.State.Terminated; terminated != nil {
			note(terminated.FinishedAt.Time)
		}
	}
	return last
}

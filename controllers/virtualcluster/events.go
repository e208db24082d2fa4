package virtualcluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Reasons of the events on the way; those of failures are the conditions'.
const (
	eventRootNamespaceCreated = "RootNamespaceCreated"
	eventControlPlaneStarting = "ControlPlaneStarting"
	eventControlPlaneReady    = "ControlPlaneReady"
	eventReady                = "Ready"
	eventAsleep               = "Asleep"
	eventAwake                = "Awake"
	eventTerminating          = "Terminating"
	eventRemoved              = "Removed"
)

// Actions of the events: what the manager was doing.
const (
	actionProvision = "Provision"
	actionRemove    = "Remove"
	actionSleep     = "Sleep"
	actionMove      = "Move"
)

// news is an event that a change of the status is worth.
type news struct{ kind, reason, action, message string }

// newsBetween are the events of a change. They are made from changes, so that a
// reconcile that repeats itself is silent.
func newsBetween(before, after tenancyv1alpha1.VirtualClusterStatus) []news {
	var all []news
	if c := turned(before, after, tenancyv1alpha1.ConditionControlPlaneReady); c != nil && !changedSleep(before, after) {
		all = append(all, controlPlaneNews(after, c))
	}
	for _, kind := range []string{
		tenancyv1alpha1.ConditionWithinLimits, tenancyv1alpha1.ConditionControllersWorking, tenancyv1alpha1.ConditionExtraSANsValid,
	} {
		if c := turned(before, after, kind); c != nil {
			all = append(all, healthNews(before, c)...)
		}
	}
	if changedSleep(before, after) {
		all = append(all, sleepNews(meta.FindStatusCondition(after.Conditions, tenancyv1alpha1.ConditionAwake)))
	}
	if c := turned(before, after, tenancyv1alpha1.ConditionAwake); c != nil && c.Reason == tenancyv1alpha1.ReasonInvalidSchedule {
		all = append(all, news{corev1.EventTypeWarning, c.Reason, actionSleep, c.Message})
	}
	if c := turned(before, after, tenancyv1alpha1.ConditionMoved); c != nil {
		all = append(all, moveNews(before, c)...)
	}
	if c := turned(before, after, tenancyv1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue {
		all = append(all, news{corev1.EventTypeNormal, eventReady, actionProvision, c.Message})
	}
	return all
}

// changedSleep reports whether a control plane fell asleep or woke. A new one is
// awake, which is no news.
func changedSleep(before, after tenancyv1alpha1.VirtualClusterStatus) bool {
	was := meta.IsStatusConditionFalse(before.Conditions, tenancyv1alpha1.ConditionAwake)
	return was != meta.IsStatusConditionFalse(after.Conditions, tenancyv1alpha1.ConditionAwake)
}

// sleepNews says in an event what the condition Awake turned to.
func sleepNews(c *metav1.Condition) news {
	if c.Status == metav1.ConditionFalse {
		return news{corev1.EventTypeNormal, eventAsleep, actionSleep, c.Message}
	}
	return news{corev1.EventTypeNormal, eventAwake, actionSleep, c.Message}
}

// moveNews are the events of the condition Moved. That a control plane was
// created where its spec says is no news.
func moveNews(before tenancyv1alpha1.VirtualClusterStatus, c *metav1.Condition) []news {
	switch {
	case c.Status == metav1.ConditionFalse && c.Reason != tenancyv1alpha1.ReasonMoving:
		return []news{{corev1.EventTypeWarning, c.Reason, actionMove, c.Message}}
	case c.Status == metav1.ConditionTrue && !meta.IsStatusConditionFalse(before.Conditions, c.Type):
		return nil
	default:
		return []news{{corev1.EventTypeNormal, c.Reason, actionMove, c.Message}}
	}
}

// controlPlaneNews says in an event what the condition ControlPlaneReady turned to.
func controlPlaneNews(status tenancyv1alpha1.VirtualClusterStatus, c *metav1.Condition) news {
	action := actionProvision
	if status.Phase == tenancyv1alpha1.PhaseTerminating {
		action = actionRemove
	}
	switch c.Reason {
	case tenancyv1alpha1.ReasonReady:
		return news{corev1.EventTypeNormal, eventControlPlaneReady, action, "Kubernetes " + status.Version + " serves at " + status.Endpoint}
	case tenancyv1alpha1.ReasonStarting:
		return news{corev1.EventTypeNormal, eventControlPlaneStarting, action, c.Message}
	case tenancyv1alpha1.ReasonTerminating:
		return news{corev1.EventTypeNormal, eventTerminating, action, "Removing everything that belongs to the tenant"}
	default:
		return news{corev1.EventTypeWarning, c.Reason, action, c.Message}
	}
}

// healthNews are the events of the conditions WithinLimits, ControllersWorking and
// ExtraSANsValid. That they are true of a new control plane is not worth one.
func healthNews(before tenancyv1alpha1.VirtualClusterStatus, c *metav1.Condition) []news {
	switch {
	case c.Status == metav1.ConditionFalse:
		return []news{{corev1.EventTypeWarning, c.Reason, actionProvision, c.Message}}
	case meta.IsStatusConditionFalse(before.Conditions, c.Type):
		return []news{{corev1.EventTypeNormal, c.Reason, actionProvision, c.Message}}
	default:
		return nil
	}
}

// turned is the condition of a type if its status or reason is another than
// before, else nil.
func turned(before, after tenancyv1alpha1.VirtualClusterStatus, kind string) *metav1.Condition {
	is := meta.FindStatusCondition(after.Conditions, kind)
	was := meta.FindStatusCondition(before.Conditions, kind)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}

// record sends events.
func (r *Reconciler) record(vc *tenancyv1alpha1.VirtualCluster, all []news) {
	for _, n := range all {
		r.Events.Eventf(vc, nil, n.kind, n.reason, n.action, "%s", n.message)
	}
}

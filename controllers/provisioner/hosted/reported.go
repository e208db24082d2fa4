package hosted

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// awaited is the message until vc-host reports on a control plane.
const awaited = "Waiting for a replica of vc-host to start the control plane"

// reported returns where a control plane stands, without the credentials of its
// clients. A report about an earlier generation of the VirtualCluster stands
// until the next one.
func reported(status *tenancyv1alpha1.HostedControlPlaneStatus) (provisioner.ControlPlane, error) {
	state := provisioner.ControlPlane{
		Limits:      limits(status.Conditions),
		Controllers: controllers(status.Conditions),
		ExtraSANs:   extraSANs(status.Conditions),
		Sleep:       sleep(status),
	}
	ready := meta.FindStatusCondition(status.Conditions, tenancyv1alpha1.ConditionReady)
	if ready == nil {
		state.Message = awaited
		return state, nil
	}
	if ready.Status == metav1.ConditionTrue {
		state.Ready = true
		state.Endpoint, state.PodEndpoint, state.Version = status.Endpoint, status.PodEndpoint, status.Version
		return state, nil
	}
	switch ready.Reason {
	case tenancyv1alpha1.ReasonStarting, tenancyv1alpha1.ReasonAsleep, tenancyv1alpha1.ReasonPaused:
		state.Message = ready.Message
		return state, nil
	default:
		return state, &provisioner.Failure{Reason: ready.Reason, Message: cmp.Or(ready.Message, ready.Reason)}
	}
}

// undeletable returns the failure to delete the data of a control plane; nil if
// the deletion proceeds.
func undeletable(status *tenancyv1alpha1.HostedControlPlaneStatus) error {
	ready := meta.FindStatusCondition(status.Conditions, tenancyv1alpha1.ConditionReady)
	if ready == nil || ready.Reason != tenancyv1alpha1.ReasonStoreUnreachable {
		return nil
	}
	return &provisioner.Failure{Reason: ready.Reason, Message: ready.Message}
}

// limits returns what the condition WithinLimits says; nil without one.
func limits(conditions []metav1.Condition) *provisioner.Limits {
	within := meta.FindStatusCondition(conditions, tenancyv1alpha1.ConditionWithinLimits)
	switch {
	case within == nil:
		return nil
	case within.Status == metav1.ConditionFalse:
		return &provisioner.Limits{Reached: within.Reason, Message: within.Message}
	default:
		return &provisioner.Limits{}
	}
}

// controllers returns what the condition ControllersWorking says; nil without
// one.
func controllers(conditions []metav1.Condition) *provisioner.Controllers {
	working := meta.FindStatusCondition(conditions, tenancyv1alpha1.ConditionControllersWorking)
	switch {
	case working == nil:
		return nil
	case working.Status == metav1.ConditionFalse:
		return &provisioner.Controllers{Failing: cmp.Or(working.Message, working.Reason)}
	default:
		return &provisioner.Controllers{}
	}
}

// extraSANs returns what the condition ExtraSANsValid says; nil without one.
func extraSANs(conditions []metav1.Condition) *provisioner.ExtraSANs {
	valid := meta.FindStatusCondition(conditions, tenancyv1alpha1.ConditionExtraSANsValid)
	switch {
	case valid == nil:
		return nil
	case valid.Status == metav1.ConditionFalse:
		return &provisioner.ExtraSANs{Rejected: valid.Reason, Message: valid.Message}
	default:
		return &provisioner.ExtraSANs{}
	}
}

// sleep returns what the condition Awake says; nil without one.
func sleep(status *tenancyv1alpha1.HostedControlPlaneStatus) *provisioner.Sleep {
	awake := meta.FindStatusCondition(status.Conditions, tenancyv1alpha1.ConditionAwake)
	if awake == nil {
		return nil
	}
	asleep := awake.Status == metav1.ConditionFalse
	s := &provisioner.Sleep{
		Asleep:  asleep,
		Paused:  asleep && awake.Reason == tenancyv1alpha1.ReasonPaused,
		Reason:  awake.Reason,
		Message: awake.Message,
	}
	if status.WakeTime != nil {
		s.WakeTime = status.WakeTime.Time
	}
	return s
}

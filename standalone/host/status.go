package host

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/vcstatus"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// maxMessage bounds the messages of conditions, as in the API.
const maxMessage = 32 << 10

// isTakingOver reports whether a replica starts a control plane that another one
// served at last, or that was stopped for a move. That is not reported: the other
// one serves until then, or has ended, and clients wait for a moment.
func isTakingOver(
	status tenancyv1alpha1.HostedControlPlaneStatus, replica string, state contract.ControlPlane, err error,
) bool {
	return err == nil && !state.Ready && !state.IsAsleep() && (status.Host != replica || status.Move != nil) &&
		meta.IsStatusConditionTrue(status.Conditions, tenancyv1alpha1.ConditionReady)
}

// report writes where a control plane stands into a status. The generation is
// that of the VirtualCluster. The addresses of a control plane that is not
// ready stay: its clients use them again.
func report(status *tenancyv1alpha1.HostedControlPlaneStatus, generation int64, state contract.ControlPlane, err error) {
	if state.Ready {
		status.Endpoint, status.PodEndpoint, status.Version = state.Endpoint, state.PodEndpoint, state.Version
	}
	set := func(kind string, good bool, reason, message string) {
		setCondition(&status.Conditions, generation, kind, good, reason, message)
	}
	reason, message := readiness(state, err)
	set(tenancyv1alpha1.ConditionReady, reason == tenancyv1alpha1.ReasonReady, reason, message)
	if err != nil {
		return
	}
	if limits := state.Limits; limits != nil {
		reason := cmp.Or(limits.Reached, tenancyv1alpha1.ReasonWithinLimits)
		set(tenancyv1alpha1.ConditionWithinLimits, limits.Reached == "", reason, limits.Message)
	}
	if controllers := state.Controllers; controllers != nil {
		working, reason := controllers.Failing == "", tenancyv1alpha1.ReasonControllersWorking
		if !working {
			reason = tenancyv1alpha1.ReasonControllersFailing
		}
		set(tenancyv1alpha1.ConditionControllersWorking, working, reason, controllers.Failing)
	}
	status.WakeTime = nil
	if sleep := state.Sleep; sleep != nil {
		set(tenancyv1alpha1.ConditionAwake, !sleep.Asleep, sleep.Reason, sleep.Message)
		if !sleep.WakeTime.IsZero() {
			status.WakeTime = &metav1.Time{Time: sleep.WakeTime}
		}
	}
}

// reportSANs writes whether a control plane has all extra names; nil removes the
// condition.
func reportSANs(status *tenancyv1alpha1.HostedControlPlaneStatus, generation int64, report *contract.ExtraSANs) {
	if report == nil {
		meta.RemoveStatusCondition(&status.Conditions, tenancyv1alpha1.ConditionExtraSANsValid)
		return
	}
	reason := cmp.Or(report.Rejected, tenancyv1alpha1.ReasonValid)
	message := cmp.Or(report.Message, "The control plane has all extra names")
	setCondition(&status.Conditions, generation, tenancyv1alpha1.ConditionExtraSANsValid, report.Rejected == "", reason, message)
}

// readiness returns the reason and the message of the condition Ready.
func readiness(state contract.ControlPlane, err error) (reason, message string) {
	failure := contract.AsFailure(err)
	switch {
	case failure != nil:
		return failure.Reason, failure.Message
	case err != nil:
		return tenancyv1alpha1.ReasonStartFailed, err.Error()
	case state.Ready:
		return tenancyv1alpha1.ReasonReady, "The control plane serves"
	case state.IsAsleep():
		return tenancyv1alpha1.ReasonAsleep, state.Sleep.Message
	}
	return tenancyv1alpha1.ReasonStarting, state.Message
}

// setCondition sets a condition, which is true if all is good.
func setCondition(conditions *[]metav1.Condition, generation int64, kind string, good bool, reason, message string) {
	condition := metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: vcstatus.Truncate(message, maxMessage),
		ObservedGeneration: generation,
	}
	if good {
		condition.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(conditions, condition)
}

package virtualcluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// maxMessage bounds what an error of any length does to a status.
const maxMessage = 1024

// report writes the status if it changed, records events, and returns when to
// reconcile again.
//
// The patch uses optimistic locking: conditions are one list to a merge patch,
// and the condition Syncing in it belongs to the syncer. A conflict is retried
// at once.
func (r *Reconciler) report(ctx context.Context, before, vc *tenancyv1alpha1.VirtualCluster, o outcome) (reconcile.Result, error) {
	vc.Status = statusOf(vc, o)
	if equality.Semantic.DeepEqual(before.Status, vc.Status) {
		return nextLook(o)
	}
	news := newsBetween(before.Status, vc.Status)
	err := r.Client.Status().Patch(ctx, vc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write status of VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
	}
	r.record(vc, news)
	r.Metrics.observe(before, vc, time.Now())
	return nextLook(o)
}

// nextLook says when to reconcile again if nothing happens until then.
func nextLook(o outcome) (reconcile.Result, error) {
	switch {
	case provisioner.AsFailure(o.err) != nil:
		return reconcile.Result{RequeueAfter: failureRetry}, nil //nolint:nilerr // a person has to mend it; the status says so
	case o.err != nil:
		return reconcile.Result{}, o.err
	case o.controlPlane.Ready, o.controlPlane.IsAsleep():
		return reconcile.Result{RequeueAfter: o.controlPlane.RecheckAfter}, nil
	default:
		return reconcile.Result{RequeueAfter: cmp.Or(o.controlPlane.RecheckAfter, progressRetry)}, nil
	}
}

// statusOf is the status that answers an outcome. Fields that it does not own,
// such as the condition Syncing, stay as they are.
func statusOf(vc *tenancyv1alpha1.VirtualCluster, o outcome) tenancyv1alpha1.VirtualClusterStatus {
	status := *vc.Status.DeepCopy()
	control := judge(vc, o)
	ready := control
	if control.status == metav1.ConditionTrue {
		if o.controlPlane.Ready { // one that sleeps has those from when it was awake
			status.Endpoint, status.Version = o.controlPlane.Endpoint, o.controlPlane.Version
			status.PodEndpoint = o.controlPlane.PodEndpoint
		}
		ready = o.chosen.readiness(meta.FindStatusCondition(status.Conditions, tenancyv1alpha1.ConditionSyncing))
	}
	if !o.chosen.isZero() {
		status.Provisioner = o.chosen.provisioner
		o.chosen.availability(o.err).set(&status.Conditions, tenancyv1alpha1.ConditionProvisionerAvailable, vc.Generation)
	}
	if limits := o.controlPlane.Limits; limits != nil {
		withinLimits(limits).set(&status.Conditions, tenancyv1alpha1.ConditionWithinLimits, vc.Generation)
	}
	if controllers := o.controlPlane.Controllers; controllers != nil {
		controllersWork(controllers).set(&status.Conditions, tenancyv1alpha1.ConditionControllersWorking, vc.Generation)
	}
	setExtraSANs(&status.Conditions, vc, o.controlPlane.ExtraSANs)
	setAlias(&status.Conditions, vc, o.alias)
	if move := o.controlPlane.Move; move != nil {
		moved(move).set(&status.Conditions, tenancyv1alpha1.ConditionMoved, vc.Generation)
	}
	status.ObservedGeneration = vc.Generation
	status.Phase, status.Reason, status.Message = control.phase, ready.reason, ready.message
	if sleep := o.controlPlane.Sleep; sleep != nil && o.err == nil {
		setSleep(&status, sleep, vc.Generation)
	}
	control.set(&status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady, vc.Generation)
	ready.set(&status.Conditions, tenancyv1alpha1.ConditionReady, vc.Generation)
	return status
}

// setSleep writes whether the control plane sleeps.
func setSleep(status *tenancyv1alpha1.VirtualClusterStatus, sleep *provisioner.Sleep, generation int64) {
	awake := metav1.ConditionTrue
	status.WakeTime = nil
	if sleep.Asleep {
		awake = metav1.ConditionFalse
		status.Reason, status.Message = sleep.Reason, clip(sleep.Message)
		if !sleep.WakeTime.IsZero() {
			status.WakeTime = new(metav1.NewTime(sleep.WakeTime).Rfc3339Copy())
		}
	}
	verdict{"", awake, sleep.Reason, clip(sleep.Message)}.set(&status.Conditions, tenancyv1alpha1.ConditionAwake, generation)
}

// verdict is what a condition says, and the phase that goes with it.
type verdict struct {
	phase           tenancyv1alpha1.Phase
	status          metav1.ConditionStatus
	reason, message string
}

// set writes the verdict as a condition. Its time changes with its status
// alone.
func (v verdict) set(conditions *[]metav1.Condition, kind string, generation int64) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: generation,
	})
}

// judge says where the control plane stands.
func judge(vc *tenancyv1alpha1.VirtualCluster, o outcome) verdict {
	deleting := !vc.DeletionTimestamp.IsZero()
	failure := provisioner.AsFailure(o.err)
	switch {
	case failure != nil:
		return verdict{failurePhase(deleting, failure.Reason), metav1.ConditionFalse, failure.Reason, clip(failure.Message)}
	case deleting:
		return verdict{tenancyv1alpha1.PhaseTerminating, metav1.ConditionFalse, tenancyv1alpha1.ReasonTerminating, clip(removal(o))}
	case o.err != nil:
		return verdict{tenancyv1alpha1.PhasePending, metav1.ConditionFalse, tenancyv1alpha1.ReasonStartFailed, clip(o.err.Error())}
	case o.controlPlane.IsAsleep() && o.controlPlane.Sleep.Paused:
		return verdict{tenancyv1alpha1.PhasePaused, metav1.ConditionFalse, tenancyv1alpha1.ReasonPaused, clip(o.controlPlane.Sleep.Message)}
	case o.controlPlane.IsAsleep():
		return verdict{tenancyv1alpha1.PhaseAsleep, metav1.ConditionTrue, tenancyv1alpha1.ReasonAsleep, clip(o.controlPlane.Sleep.Message)}
	case !o.controlPlane.Ready:
		message := cmp.Or(o.controlPlane.Message, "The control plane is starting")
		return verdict{tenancyv1alpha1.PhasePending, metav1.ConditionFalse, tenancyv1alpha1.ReasonStarting, clip(message)}
	default:
		return verdict{tenancyv1alpha1.PhaseRunning, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady, "The tenant's apiserver serves"}
	}
}

// failurePhase is Error where only a person can help. An apiserver that does
// not answer may do so again by itself, and a start that failed is retried.
func failurePhase(deleting bool, reason string) tenancyv1alpha1.Phase {
	switch {
	case deleting:
		return tenancyv1alpha1.PhaseTerminating
	case reason == tenancyv1alpha1.ReasonUnreachable, reason == tenancyv1alpha1.ReasonStartFailed:
		return tenancyv1alpha1.PhasePending
	default:
		return tenancyv1alpha1.PhaseError
	}
}

// removal says how far a deletion is.
func removal(o outcome) string {
	if o.err != nil {
		return o.err.Error()
	}
	return "Waiting until it is gone: " + o.waitingFor
}

// readiness is that of a tenant whose control plane is ready: it takes the
// syncer as well, unless there is nothing to sync.
func (c choice) readiness(syncing *metav1.Condition) verdict {
	switch {
	case c.capabilities.Converted:
		return verdict{"", metav1.ConditionTrue, tenancyv1alpha1.ReasonReady, "The tenant can work"}
	case syncing == nil:
		return verdict{"", metav1.ConditionFalse, tenancyv1alpha1.ReasonNotSyncing, "The syncer has not reported on this tenant yet"}
	case syncing.Status != metav1.ConditionTrue:
		return verdict{"", metav1.ConditionFalse, syncing.Reason, syncing.Message}
	default:
		return verdict{"", metav1.ConditionTrue, tenancyv1alpha1.ReasonReady, "The tenant can work"}
	}
}

// withinLimits describes whether the control plane is within its limits.
func withinLimits(limits *provisioner.Limits) verdict {
	if limits.Reached != "" {
		return verdict{"", metav1.ConditionFalse, limits.Reached, clip(limits.Message)}
	}
	return verdict{"", metav1.ConditionTrue, tenancyv1alpha1.ReasonWithinLimits, "The control plane is within its limits"}
}

// controllersWork describes whether the controllers of the control plane work.
func controllersWork(controllers *provisioner.Controllers) verdict {
	if controllers.Failing != "" {
		return verdict{"", metav1.ConditionFalse, tenancyv1alpha1.ReasonControllersFailing, clip(controllers.Failing)}
	}
	return verdict{"", metav1.ConditionTrue, tenancyv1alpha1.ReasonControllersWorking, "The controllers of the control plane work"}
}

// setExtraSANs writes whether the control plane has all extra names. There is no
// condition without any.
func setExtraSANs(conditions *[]metav1.Condition, vc *tenancyv1alpha1.VirtualCluster, sans *provisioner.ExtraSANs) {
	const kind = tenancyv1alpha1.ConditionExtraSANsValid
	switch {
	case vc.Spec.ControlPlane == nil, len(vc.Spec.ControlPlane.ExtraSANs) == 0:
		meta.RemoveStatusCondition(conditions, kind)
	case sans == nil: // not known
	case sans.Rejected != "":
		verdict{"", metav1.ConditionFalse, sans.Rejected, clip(sans.Message)}.set(conditions, kind, vc.Generation)
	default:
		valid := verdict{"", metav1.ConditionTrue, tenancyv1alpha1.ReasonValid, "The control plane has all extra names"}
		valid.set(conditions, kind, vc.Generation)
	}
}

// moved describes whether the data of the control plane is in the store of the
// spec.
func moved(move *provisioner.Move) verdict {
	status := metav1.ConditionFalse
	if move.Done {
		status = metav1.ConditionTrue
	}
	return verdict{"", status, move.Reason, clip(move.Message)}
}

// clip makes one line of a message, of bounded length.
func clip(message string) string {
	message = strings.ReplaceAll(message, "\n", "; ")
	if len(message) <= maxMessage {
		return message
	}
	const mark = "…"
	return strings.ToValidUTF8(message[:maxMessage-len(mark)], "") + mark
}

package nestedcontrolplane

import (
	"cmp"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
	"github.com/virtualcluster/virtualcluster/capi/controllers/tenant"
)

// observe writes what the VirtualCluster reports.
func observe(s *scope) {
	controlPlane := s.controlPlane
	controlPlane.Status.ExternalManagedControlPlane = new(true)
	deleting(controlPlane, metav1.ConditionFalse, controlplanev1.ReasonNotDeleting, "")
	available(controlPlane, s.virtualCluster)
	if s.virtualCluster == nil {
		return
	}
	status := s.virtualCluster.Status
	if endpoint, err := tenant.Endpoint(status.Endpoint); err == nil {
		controlPlane.Spec.ControlPlaneEndpoint = endpoint
	}
	if status.Version != "" {
		controlPlane.Status.Versions = []clusterv1.StatusVersion{{Version: tenant.Version(status.Version)}}
	}
}

// available mirrors the readiness of the VirtualCluster's control plane.
func available(controlPlane *controlplanev1.NestedControlPlane, vc *tenancyv1alpha1.VirtualCluster) {
	condition := metav1.Condition{
		Type: controlplanev1.ConditionAvailable, Status: metav1.ConditionFalse,
		Reason: controlplanev1.ReasonNotAvailable, Message: "The VirtualCluster has not reported on its control plane yet",
	}
	if vc != nil {
		if source := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady); source != nil {
			condition.Status, condition.Reason, condition.Message = source.Status, source.Reason, source.Message
		}
	}
	conditions.Set(controlPlane, condition)
}

// initialize reports, once and for all, that Cluster API can use the control
// plane.
func initialize(controlPlane *controlplanev1.NestedControlPlane) {
	if conditions.IsTrue(controlPlane, controlplanev1.ConditionAvailable) &&
		conditions.IsTrue(controlPlane, controlplanev1.ConditionKubeconfigAvailable) &&
		controlPlane.Spec.ControlPlaneEndpoint.Host != "" {
		controlPlane.Status.Initialization.ControlPlaneInitialized = new(true)
	}
}

// report writes a condition: true with a reason, or false with an error.
func report(controlPlane *controlplanev1.NestedControlPlane, kind, reason string, err error) {
	condition := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, controlplanev1.ReasonFailed, err.Error()
		if b := (*blockedError)(nil); errors.As(err, &b) {
			condition.Reason = b.reason
		}
	}
	conditions.Set(controlPlane, condition)
}

// deleting writes the condition Deleting.
func deleting(controlPlane *controlplanev1.NestedControlPlane, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(controlPlane, metav1.Condition{
		Type: controlplanev1.ConditionDeleting, Status: status, Reason: reason, Message: message,
	})
}

// waiting describes what the deletion of a VirtualCluster waits for.
func waiting(vc *tenancyv1alpha1.VirtualCluster) string {
	return cmp.Or(vc.Status.Message, "Waiting until VirtualCluster "+vc.Name+" is gone")
}

package virtualcluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// chooseProvisioner is the spec's, else the one it has, else the manager's default.
func chooseProvisioner(
	vc *tenancyv1alpha1.VirtualCluster, root *corev1.Namespace, byDefault tenancyv1alpha1.ProvisionerType,
) tenancyv1alpha1.ProvisionerType {
	if vc.Spec.Provisioner != "" {
		return vc.Spec.Provisioner
	}
	if root != nil {
		if kind := root.Annotations[names.Provisioner]; kind != "" {
			return tenancyv1alpha1.ProvisionerType(kind)
		}
	}
	return byDefault
}

// findProvisioner fails by saying which there are.
func findProvisioner(registry provisioner.Registry, kind tenancyv1alpha1.ProvisionerType) (provisioner.Provisioner, error) {
	if found, ok := registry[kind]; ok {
		return found, nil
	}
	if kind == "" {
		return nil, provisioner.Failf(tenancyv1alpha1.ReasonProvisionerUnavailable,
			"spec.provisioner is not set and this manager has no default: create the VirtualCluster with one of: %s", registry)
	}
	return nil, provisioner.Failf(tenancyv1alpha1.ReasonProvisionerUnavailable,
		"this manager has no provisioner %s; it has: %s", kind, registry)
}

// choice is the provisioner of a VirtualCluster, and those that there are.
type choice struct {
	provisioner  tenancyv1alpha1.ProvisionerType
	offered      string
	capabilities provisioner.Capabilities
}

// isZero reports whether a reconcile went no further than before the choice.
func (c choice) isZero() bool { return c.offered == "" }

// availability describes whether the chosen provisioner is offered.
func (c choice) availability(err error) verdict {
	if failure := provisioner.AsFailure(err); failure != nil && failure.Reason == tenancyv1alpha1.ReasonProvisionerUnavailable {
		return verdict{"", metav1.ConditionFalse, failure.Reason, clip(failure.Message)}
	}
	message := fmt.Sprintf("Provisioner %s runs the control plane; this manager offers: %s", c.provisioner, c.offered)
	if !c.capabilities.Network {
		message += ". The apiserver does not reach pods of the super cluster, such as the tenant's webhooks"
	}
	return verdict{"", metav1.ConditionTrue, tenancyv1alpha1.ReasonProvisionerAvailable, clip(message)}
}

package virtualcluster

import (
	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// provisionerAnnotation on the root namespace remembers the provisioner of a
// VirtualCluster that names none: another default of a later manager must not
// start a second control plane and forget the first.
const provisionerAnnotation = names.Domain + "/provisioner"

// chooseProvisioner is the spec's, else the one it has, else the manager's default.
func chooseProvisioner(
	vc *tenancyv1alpha1.VirtualCluster, root *corev1.Namespace, byDefault tenancyv1alpha1.ProvisionerType,
) tenancyv1alpha1.ProvisionerType {
	if vc.Spec.Provisioner != "" {
		return vc.Spec.Provisioner
	}
	if root != nil {
		if kind := root.Annotations[provisionerAnnotation]; kind != "" {
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

package hosted

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/controllers"
)

// errDaemonSetsRefused is why a tenant cannot create a DaemonSet.
var errDaemonSetsRefused = errors.New("this cluster has no nodes of its own, and runs no DaemonSets: use a Deployment with " +
	"topologySpreadConstraints, or ask a platform admin to allow DaemonSets (spec.policy.daemonSets)")

// refuseDaemonSets refuses the creation of DaemonSets, which would have no pods.
type refuseDaemonSets struct{}

// Handles implements admission.Interface.
func (refuseDaemonSets) Handles(operation admission.Operation) bool {
	return operation == admission.Create
}

// Validate implements admission.ValidationInterface.
func (refuseDaemonSets) Validate(_ context.Context, request admission.Attributes, _ admission.ObjectInterfaces) error {
	if request.GetResource().GroupResource() == appsv1.Resource("daemonsets") {
		return admission.NewForbidden(request, errDaemonSetsRefused)
	}
	return nil
}

// controllersOfTenant returns the controllers of a tenant's control plane.
func controllersOfTenant(daemonSets bool) []Controller {
	if daemonSets {
		return append(controllers.Tenant(), controllers.DaemonSets())
	}
	return controllers.Tenant()
}

// admission returns the admission of the control plane beside upstream's.
func (s Spec) admission() []admission.Interface {
	all := []admission.Interface{&protectSharedCRDs{}, limitDefinitions{}, limitExpressions{}}
	if !s.DaemonSets {
		all = append(all, refuseDaemonSets{})
	}
	return all
}

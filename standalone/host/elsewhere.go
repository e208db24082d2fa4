package host

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// elsewhere returns where another replica accepts connections for a control
// plane.
func (h *host) elsewhere(ctx context.Context, controlPlane string) (address string, found bool) {
	plane := &tenancyv1alpha1.HostedControlPlane{}
	key := types.NamespacedName{Namespace: controlPlane, Name: tenancyv1alpha1.HostedControlPlaneName}
	if err := h.manager.GetCache().Get(ctx, key, plane); err != nil {
		return "", false
	}
	address = plane.Status.HostAddress
	return address, address != "" && plane.Status.Host != h.options.Replica
}

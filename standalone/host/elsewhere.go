package host

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// elsewhere returns where another replica accepts connections for a control
// plane.
func (h *host) elsewhere(ctx context.Context, controlPlane string) (at hosted.Addresses, found bool) {
	plane := &tenancyv1alpha1.HostedControlPlane{}
	key := types.NamespacedName{Namespace: controlPlane, Name: tenancyv1alpha1.HostedControlPlaneName}
	if err := h.manager.GetCache().Get(ctx, key, plane); err != nil {
		return hosted.Addresses{}, false
	}
	at = hosted.Addresses{Peers: plane.Status.HostAddress, Pods: strings.TrimPrefix(plane.Status.PodEndpoint, "https://")}
	return at, at.Peers != "" && plane.Status.Host != h.options.Replica
}

package resources

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ForNetworks returns the kinds for tenants with networks: pods and Services
// belong to one.
func ForNetworks(flows []kinds.Flow) []kinds.Flow {
	out := make([]kinds.Flow, len(flows))
	for i, flow := range flows {
		switch k := flow.(type) {
		case kinds.Down[*corev1.Pod]:
			k.Network = namedNetwork[*corev1.Pod]
			flow = k
		case kinds.Down[*corev1.Service]:
			k.Network = namedNetwork[*corev1.Service]
			flow = k
		}
		out[i] = flow
	}
	return out
}

// namedNetwork returns the network that an object names.
func namedNetwork[T client.Object](tenant T) string { return tenant.GetLabels()[networkv1.Label] }

package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ForNetworks returns the kinds for tenants with networks: pods and Services
// belong to one, and NetworkPolicies keep networks apart.
func ForNetworks(flows []kinds.Flow, outside Outside) []kinds.Flow {
	out := make([]kinds.Flow, len(flows))
	for i, flow := range flows {
		switch k := flow.(type) {
		case kinds.Down[*corev1.Pod]:
			k.Network, k.Attach = namedNetwork[*corev1.Pod], attachPod
			flow = k
		case kinds.Down[*corev1.Service]:
			k.Network, k.InNetwork = namedNetwork[*corev1.Service], selectInNetwork
			flow = k
		case kinds.Down[*networkingv1.NetworkPolicy]:
			flow = outside.bound(k)
		}
		out[i] = flow
	}
	return out
}

// namedNetwork returns the network that an object names.
func namedNetwork[T client.Object](tenant T) string { return tenant.GetLabels()[networkv1.Label] }

// selectInNetwork has a Service select pods of its own network alone, so that its
// endpoints are there. One without a selector has endpoints of the tenant's own.
// The Services of the platform in a network lead to the apiserver and the DNS.
func selectInNetwork(tenant, desired *corev1.Service, network string) error {
	of := tenant.Annotations[names.NetworkService]
	if (of == names.APIService || of == names.DNSService) && tenant.Name == of+"-"+network {
		// The DNS of the tenant is in another network, and the policies allow it.
		metav1.SetMetaDataLabel(&desired.ObjectMeta, names.NetworkService, of)
		return nil
	}
	if len(desired.Spec.Selector) == 0 {
		return nil
	}
	if selected, named := tenant.Spec.Selector[networkv1.Label]; named && selected != network {
		return fmt.Errorf("spec.selector selects pods of network %q, and the Service is in network %q: set its label %s to the one of its pods",
			selected, network, networkv1.Label)
	}
	delete(desired.Spec.Selector, names.Label(networkv1.Label)) // what stands for a label that stays in the tenant
	desired.Spec.Selector[networkv1.Label] = network
	return nil
}

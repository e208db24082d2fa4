package resources

import (
	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/virtualnode"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Agent is the address of the kubelet API of virtual nodes; the zero value if
// there is none.
type Agent struct {
	// Host is an IP address or a DNS name that tenants' apiservers can reach.
	Host string
	Port int32
}

// Node is synced up to the tenants with pods on it, as a virtual node: the
// properties that placement depends on, the address of the agent in place of
// the kubelet's, and the addresses that its pods show as their host's.
func Node(agent Agent) kinds.Flow {
	return kinds.Up[*corev1.Node]{
		Name:          "Node",
		Object:        &corev1.Node{},
		List:          &corev1.NodeList{},
		Summary:       "up, as virtual nodes: those that run the tenant's pods",
		ClusterScoped: true,
		Node:          true,
		Desired:       agent.virtualNode,
		Keep:          keepNodeLabels,
		Merge: func(tenant, desired *corev1.Node) {
			tenant.Labels = desired.Labels
			tenant.Spec.Unschedulable, tenant.Spec.Taints = desired.Spec.Unschedulable, desired.Spec.Taints
		},
		Status: func(tenant, desired *corev1.Node) { tenant.Status = desired.Status },
	}
}

func (a Agent) virtualNode(_ kinds.View, super *corev1.Node) *corev1.Node {
	node := virtualnode.Of(super)
	node.Status.Addresses = a.addresses(node.Status.Addresses)
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = a.Port
	return node
}

// keepNodeLabels keeps the labels of a tenant that runs DaemonSets, which it
// selects the nodes by. The super cluster's own are not the tenant's to set.
func keepNodeLabels(v kinds.View, tenant, desired *corev1.Node) {
	if v.Tenant.Policy.DaemonSets != tenancyv1alpha1.DaemonSetsRun {
		return
	}
	for key, value := range tenant.Labels {
		if !virtualnode.LabelShown(key) && !names.Reserved(key) {
			desired.Labels[key] = value
		}
	}
}

// addresses returns the agent's address, with the type that an apiserver
// prefers, and the addresses of the node ports of services. Without an agent
// there are none: an apiserver would connect to any of them as the kubelet's.
func (a Agent) addresses(ofNode []corev1.NodeAddress) []corev1.NodeAddress {
	if a.Host == "" {
		return nil
	}
	return append([]corev1.NodeAddress{{Type: corev1.NodeHostName, Address: a.Host}}, ofNode...)
}

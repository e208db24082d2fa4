package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
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
	spec, status := super.Spec.DeepCopy(), &super.Status
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: super.Name, Labels: map[string]string{}},
		Spec:       corev1.NodeSpec{Unschedulable: spec.Unschedulable, Taints: spec.Taints},
		Status: corev1.NodeStatus{
			Capacity:    status.Capacity.DeepCopy(),
			Allocatable: status.Allocatable.DeepCopy(),
			Conditions:  withoutHeartbeats(status.Conditions),
			NodeInfo: corev1.NodeSystemInfo{
				Architecture:            status.NodeInfo.Architecture,
				OperatingSystem:         status.NodeInfo.OperatingSystem,
				OSImage:                 status.NodeInfo.OSImage,
				KernelVersion:           status.NodeInfo.KernelVersion,
				ContainerRuntimeVersion: status.NodeInfo.ContainerRuntimeVersion,
				KubeletVersion:          status.NodeInfo.KubeletVersion,
			},
			// The tenant's apiserver checks them before it allows changes of a
			// pod.
			DeclaredFeatures: slices.Clone(status.DeclaredFeatures),
			Addresses:        a.addresses(status.Addresses),
			DaemonEndpoints:  corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: a.Port}},
		},
	}
	for k, v := range super.Labels {
		if nodeLabelShown(k) {
			node.Labels[k] = v
		}
	}
	return node
}

// keepNodeLabels keeps the labels of a tenant that runs DaemonSets, which it
// selects the nodes by. The super cluster's own are not the tenant's to set.
func keepNodeLabels(v kinds.View, tenant, desired *corev1.Node) {
	if v.Tenant.Policy.DaemonSets != tenancyv1alpha1.DaemonSetsRun {
		return
	}
	for key, value := range tenant.Labels {
		if !nodeLabelShown(key) && !names.Reserved(key) {
			desired.Labels[key] = value
		}
	}
}

// addresses returns the agent's address, with the type that an apiserver
// prefers, and the addresses of the node ports of services. Without an agent
// there are none: an apiserver would connect to any of them as the kubelet's.
func (a Agent) addresses(super []corev1.NodeAddress) []corev1.NodeAddress {
	if a.Host == "" {
		return nil
	}
	shown := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: a.Host}}
	for _, address := range super {
		if address.Type == corev1.NodeInternalIP || address.Type == corev1.NodeExternalIP {
			shown = append(shown, address)
		}
	}
	return shown
}

// withoutHeartbeats returns conditions whose last heartbeat is their last
// transition, as in conditions that no kubelet writes. The kubelet's own
// heartbeats would cost a request to each tenant of the node every few minutes.
func withoutHeartbeats(in []corev1.NodeCondition) []corev1.NodeCondition {
	out := make([]corev1.NodeCondition, len(in))
	for i, c := range in {
		c.LastHeartbeatTime = c.LastTransitionTime
		out[i] = c
	}
	return out
}

// nodeLabelShown reports whether a label is a well-known one for placement.
func nodeLabelShown(key string) bool {
	switch key {
	case corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable:
		return true
	}
	return strings.HasPrefix(key, "topology.kubernetes.io/")
}

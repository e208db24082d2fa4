// Package virtualnode decides what a tenant sees of a node of the super cluster:
// what the placement of its pods depends on, and nothing of the machine.
package virtualnode

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of returns a node as tenants see it. Its addresses are those of the node ports
// of Services.
func Of(super *corev1.Node) *corev1.Node {
	spec, status := super.Spec.DeepCopy(), &super.Status
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: super.Name, Labels: shownLabels(super.Labels)},
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
			Addresses:        ipAddresses(status.Addresses),
		},
	}
}

func shownLabels(super map[string]string) map[string]string {
	shown := map[string]string{}
	for key, value := range super {
		if LabelShown(key) {
			shown[key] = value
		}
	}
	return shown
}

// LabelShown reports whether a label is a well-known one for placement.
func LabelShown(key string) bool {
	switch key {
	case corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable:
		return true
	}
	return strings.HasPrefix(key, "topology.kubernetes.io/")
}

func ipAddresses(super []corev1.NodeAddress) []corev1.NodeAddress {
	var shown []corev1.NodeAddress
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

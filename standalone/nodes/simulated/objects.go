package simulated

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	namePrefix = "node-"
	// Max is the maximum number of nodes, which is the number of addresses for
	// them.
	Max = 65534

	// fakeAnnotation marks the nodes that kwok simulates: this program's, and
	// those that an admin adds.
	fakeAnnotation, fakeValue = "kwok.x-k8s.io/node", "fake"
	// managerLabel marks the nodes that this program created and may delete.
	managerLabel, managerValue = "app.kubernetes.io/managed-by", "vc-standalone"
)

// nameOf returns the name of the i-th node, counted from 1.
func nameOf(i int) string { return namePrefix + strconv.Itoa(i) }

// indexOf returns the number of the node of that name, zero for nodes of
// others.
func indexOf(name string) int {
	number, ours := strings.CutPrefix(name, namePrefix)
	i, err := strconv.Atoi(number)
	if !ours || err != nil || i < 1 || i > Max || nameOf(i) != name {
		return 0
	}
	return i
}

// addressOf returns the address of a node, in a range that is reserved for
// benchmarks (RFC 2544).
func addressOf(name string) string {
	i := indexOf(name)
	return fmt.Sprintf("198.18.%d.%d", i>>8, i&0xff)
}

// newNode returns the i-th node as it is created.
func newNode(i int) *corev1.Node {
	name := nameOf(i)
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Annotations: map[string]string{fakeAnnotation: fakeValue},
		Labels: map[string]string{
			managerLabel:           managerValue,
			corev1.LabelHostname:   name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: runtime.GOARCH,
		},
	}}
}

// describe fills in what a kubelet would report about the machine. kwok adds
// the conditions.
func describe(status *corev1.NodeStatus, name, kubernetes string) {
	status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: addressOf(name)},
		{Type: corev1.NodeHostName, Address: name},
	}
	status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("1000"),
	}
	status.Allocatable = status.Capacity
	status.NodeInfo = corev1.NodeSystemInfo{
		Architecture:            runtime.GOARCH,
		OperatingSystem:         "linux",
		OSImage:                 "none",
		KernelVersion:           "none",
		ContainerRuntimeVersion: "kwok://0.8.0",
		KubeletVersion:          kubernetes,
	}
}

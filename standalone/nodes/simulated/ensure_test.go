package simulated

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestIsReady(t *testing.T) {
	for name, c := range map[string]struct {
		conditions []corev1.NodeCondition
		want       bool
	}{
		"nothing is known": {nil, false},
		"ready":            {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, true},
		"not ready":        {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}, false},
		"only short of nothing": {
			[]corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{Status: corev1.NodeStatus{Conditions: c.conditions}}
			if got := isReady(node); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestDescribe: a node shows what placement depends on, and an address that no
// other node has.
func TestDescribe(t *testing.T) {
	var one, other corev1.NodeStatus
	describe(&one, nameOf(1), "v1.36.3")
	describe(&other, nameOf(256), "v1.36.3")
	if one.NodeInfo.KubeletVersion != "v1.36.3" {
		t.Errorf("the kubelet is of %s", one.NodeInfo.KubeletVersion)
	}
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if quantity := one.Allocatable[resource]; quantity.Sign() <= 0 {
			t.Errorf("it has no %s", resource)
		}
	}
	address := func(status corev1.NodeStatus) netip.Addr { return netip.MustParseAddr(status.Addresses[0].Address) }
	if address(one) == address(other) {
		t.Errorf("two nodes have the address %s", address(one))
	}
	if network := netip.MustParsePrefix(PodNetwork); network.Contains(address(one)) || network.Contains(address(other)) {
		t.Error("a node has an address of the pods")
	}
}

// TestPodAddresses: pods in the node's network have its address, and the others
// one each.
func TestPodAddresses(t *testing.T) {
	funcs := templateFuncs(&addresses{})
	podIPs, ok := funcs["PodIPsWith"].(func(string, bool, string, string, string) []string)
	if !ok {
		t.Fatalf("PodIPsWith is a %T", funcs["PodIPsWith"])
	}
	node := nameOf(3)
	if got := podIPs(node, true, "", "", ""); len(got) != 1 || got[0] != addressOf(node) {
		t.Errorf("a pod in the network of its node has %v, want %s", got, addressOf(node))
	}
	first, second := podIPs(node, false, "", "", ""), podIPs(node, false, "", "", "")
	if first[0] == second[0] || !netip.MustParsePrefix(PodNetwork).Contains(netip.MustParseAddr(second[0])) {
		t.Errorf("two pods have %v and %v", first, second)
	}
}

package simulated

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestIndexOf(t *testing.T) {
	for name, want := range map[string]int{
		"node-1": 1, "node-65534": Max, "node-65535": 0, "node-0": 0, "node-01": 0, "node--1": 0, "node-": 0, "other-1": 0, "": 0,
	} {
		if got := indexOf(name); got != want {
			t.Errorf("indexOf(%q) is %d, want %d", name, got, want)
		}
	}
}

func TestNodesHaveAddressesOfTheirOwn(t *testing.T) {
	network := netip.MustParsePrefix("198.18.0.0/15")
	seen := map[string]bool{}
	for i := 1; i <= Max; i++ {
		address := addressOf(nameOf(i))
		parsed, err := netip.ParseAddr(address)
		if err != nil || !network.Contains(parsed) {
			t.Fatalf("node %d has the address %q", i, address)
		}
		if seen[address] {
			t.Fatalf("%s is given twice", address)
		}
		seen[address] = true
	}
}

func TestPodAddressesGoOnBehindThoseInUse(t *testing.T) {
	pod := func(ip string, hostNetwork bool) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{HostNetwork: hostNetwork}, Status: corev1.PodStatus{PodIP: ip}}
	}
	free := used([]corev1.Pod{
		pod("10.128.0.9", false), pod("10.128.1.4", false), pod("", false), pod("198.18.0.1", true), pod("10.1.2.3", false), pod("fd00::1", false),
	})
	last := netip.MustParseAddr("10.128.1.4")
	for range 1000 {
		next := netip.MustParseAddr(free.next())
		if next.Compare(last) <= 0 {
			t.Fatalf("%s follows %s", next, last)
		}
		last = next
	}
}

func TestPodAddressesStayInTheirNetwork(t *testing.T) {
	network := netip.MustParsePrefix(PodNetwork)
	free := &addresses{}
	free.use("10.255.255.250")
	for range 20 {
		if ip := free.next(); !network.Contains(netip.MustParseAddr(ip)) || ip == "10.128.0.0" {
			t.Errorf("%s is not for a pod", ip)
		}
	}
}

func TestAdmitTakesAwayOnlyTheTaintOfNewNodes(t *testing.T) {
	node := newNode(1)
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady}, {Key: "mine"}}
	if !admit(node) || len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "mine" {
		t.Errorf("left %v", node.Spec.Taints)
	}
	if admit(node) {
		t.Error("it was changed twice")
	}
}

func TestStagesCoverNodesAndPods(t *testing.T) {
	byKind, err := stages()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for ref, list := range byKind {
		got[ref.Kind] = len(list)
	}
	if got["Node"] != 2 || got["Pod"] != 3 {
		t.Errorf("got %v", got)
	}
}

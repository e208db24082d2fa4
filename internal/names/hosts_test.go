package names

import "testing"

func TestIsReservedHost(t *testing.T) {
	for host, want := range map[string]bool{
		"red-0a1b2c-shop.vc.internal": true, "vc.internal": true, "localhost": true, "a.localhost": true,
		"kubernetes": true, "kubernetes.default": true, "kubernetes.default.svc": true, "kubernetes.default.svc.cluster.local": true,
		"vc-host.vc-system.svc": true, "vc-host.vc-system.svc.k8s.example.com": true, "x.cluster.local": true, "svc": true,
		"shop.example.com": false, "kubernetes.example.com": false, "svcs.example.com": false, "vc.internal.example.com": false,
		"notlocalhost": false, "xvc.internal": false,
	} {
		if got := IsReservedHost(host); got != want {
			t.Errorf("IsReservedHost(%q) = %t, want %t", host, got, want)
		}
	}
}

func TestMayBeClusterKey(t *testing.T) {
	for label, want := range map[string]bool{
		ClusterKey("team", "blue", "7f2c"): true, ClusterKey("a", "b", ""): true, "a-b-0a1b2c-c-d": true, "x-a1b2c3-d4e5f6-y": true,
		"shop": false, "team-shop": false, "team-0a1b2-shop": false, "team-0a1b2g-shop": false, "-0a1b2c-": false, "0a1b2c-shop": false,
		"team-0a1b2c": false, "a.b-0a1b2c-c": false, "": false,
	} {
		if got := MayBeClusterKey(label); got != want {
			t.Errorf("MayBeClusterKey(%q) = %t, want %t", label, got, want)
		}
	}
}

package chart

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argument returns the value of a flag of the first container of a workload.
func argument(t *testing.T, objects map[string]*unstructured.Unstructured, name, flag string) string {
	t.Helper()
	args := workloads(t, objects)[name].template.Spec.Containers[0].Args
	i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--"+flag+"=") })
	if i < 0 {
		t.Fatalf("%s has no --%s: %q", name, flag, args)
	}
	return strings.TrimPrefix(args[i], "--"+flag+"=")
}

// TestStore: vc-manager and etcd agree about the members, and a change of their
// number is one that the apiserver rejects.
func TestStore(t *testing.T) {
	one := mustRender(t, "")
	three := mustRender(t, "vcStore: {replicas: 3, quotaGiB: 2}")
	const member = "vc-store-0=https://vc-store-0.vc-store.vc-system.svc:2380"
	if got := argument(t, one, "vc-store", "initial-cluster"); got != member {
		t.Errorf("the initial cluster is %s", got)
	}
	if got := argument(t, three, "vc-store", "initial-cluster"); got != member+","+
		strings.ReplaceAll(member, "-0", "-1")+","+strings.ReplaceAll(member, "-0", "-2") {
		t.Errorf("the initial cluster is %s", got)
	}
	for flag, want := range map[string]string{"store-service": "vc-system/vc-store", "store-members": "3", "store-quota": "2Gi"} {
		if got := argument(t, three, "vc-manager", flag); got != want {
			t.Errorf("vc-manager has --%s=%s, want %s", flag, got, want)
		}
	}
	if got := argument(t, three, "vc-store", "quota-backend-bytes"); got != "2147483648" {
		t.Errorf("the quota of etcd is %s", got)
	}
	claim := func(objects map[string]*unstructured.Unstructured) string {
		return typed[appsv1.StatefulSet](t, objects, "StatefulSet")["vc-store"].Spec.VolumeClaimTemplates[0].Name
	}
	if claim(one) == claim(three) {
		t.Errorf("volumes are %s with any number of members", claim(one))
	}
}

// TestStoreIsClosed: etcd serves nothing without a certificate but metrics and
// probes, and pods of no other component reach its data.
func TestStoreIsClosed(t *testing.T) {
	objects := mustRender(t, everything)
	args := workloads(t, objects)["vc-store"].template.Spec.Containers[0].Args
	for _, want := range []string{"--client-cert-auth", "--peer-client-cert-auth", "--enable-grpc-gateway=false"} {
		if !slices.Contains(args, want) {
			t.Errorf("etcd runs without %s: %q", want, args)
		}
	}
	for _, arg := range args {
		if strings.Contains(arg, "http://") && arg != "--listen-metrics-urls=http://0.0.0.0:2381" {
			t.Errorf("etcd has %s", arg)
		}
	}
	from := map[string]string{}
	for _, rule := range typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")["vc-store"].Spec.Ingress {
		for _, peer := range rule.From {
			if peer.PodSelector != nil && peer.NamespaceSelector == nil {
				from[rule.Ports[0].Port.String()] += peer.PodSelector.MatchLabels["app.kubernetes.io/name"]
			}
		}
		if len(rule.Ports) != 1 || len(rule.From) != 1 {
			t.Errorf("the rule %v is for several ports or peers", rule)
		}
	}
	if from["client"] != "vc-host" || from["peer"] != "vc-store" {
		t.Errorf("pods that reach the ports: %v", from)
	}
}

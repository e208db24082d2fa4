package policies

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// BenchmarkFilter makes the filter of tenants with networks, each of which has a
// pod, as vc-syncer keeps them apart.
func BenchmarkFilter(b *testing.B) {
	for _, size := range []struct{ tenants, networks int }{{1, 100}, {100, 3}, {100, 10}} {
		b.Run(fmt.Sprintf("%d tenants with %d networks", size.tenants, size.networks), func(b *testing.B) {
			c := networked(size.tenants, size.networks)
			b.ReportAllocs()
			for b.Loop() {
				f, err := NewFilter(c)
				if err != nil {
					b.Fatal(err)
				}
				if len(f.Egress.Isolated) != size.tenants*size.networks || len(f.Egress.Allowed) < len(f.Egress.Isolated) {
					b.Fatalf("%d pods are isolated, with %d allowances", len(f.Egress.Isolated), len(f.Egress.Allowed))
				}
			}
		})
	}
}

// networked returns tenants with namespaces of the system and one with pods, and
// the policies of their networks.
func networked(tenants, networks int) Cluster {
	const network, tenant = "network", "tenant"
	c := Cluster{Namespaces: map[string]labels.Set{}}
	address := netip.MustParseAddr("10.128.0.0")
	for t := range tenants {
		of := fmt.Sprint("tenant-", t)
		own := &metav1.LabelSelector{MatchLabels: map[string]string{tenant: of}}
		add := func(namespace, name string, spec networkingv1.NetworkPolicySpec) {
			c.Policies = append(c.Policies, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec})
		}
		for _, name := range []string{"kube-system", "kube-public", "kube-node-lease", "default"} {
			ns := of + "-" + name
			c.Namespaces[ns] = labels.Set{tenant: of}
			add(ns, "isolation", networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}})
			add(ns, "egress", networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}})
			add(ns, "default", networkingv1.NetworkPolicySpec{
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress:     []ingress{{From: []peer{block("0.0.0.0/0", "10.128.0.0/9"), {NamespaceSelector: own}}}},
			})
		}
		ns := of + "-default"
		for n := range networks {
			on := fmt.Sprint("network-", n)
			address = address.Next()
			c.Pods = append(c.Pods, Pod{Namespace: ns, Labels: labels.Set{network: on}, Address: address})
			add(ns, on, networkingv1.NetworkPolicySpec{
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
				PodSelector: *by(network, on),
				Egress: []egress{
					{To: []peer{{NamespaceSelector: own, PodSelector: by(network, on)}}},
					{To: []peer{{NamespaceSelector: by("platform", "dns"), PodSelector: by("app", "dns")}}, Ports: port(53)},
					{To: []peer{{NamespaceSelector: own, PodSelector: by("app", "dns")}}, Ports: port(53)},
					{To: []peer{block("198.19.0.1/32")}, Ports: port(6443)},
					{To: []peer{block("0.0.0.0/0", "10.128.0.0/9", "192.168.0.0/16")}},
				},
			})
		}
	}
	for i := range 20 {
		c.Namespaces[fmt.Sprint("platform-", i)] = labels.Set{corev1.LabelMetadataName: fmt.Sprint("platform-", i)}
	}
	return c
}

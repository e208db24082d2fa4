package tenants

import (
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestConverted: a tenant whose objects have no copies is answered with its own
// names, as others are.
func TestConverted(t *testing.T) {
	const key, podIP = "white", "127.0.3.1"
	w := newWorld(t, DefaultLimits())
	for _, ns := range []string{"default", metav1.NamespaceSystem} {
		w.add(w.directory.namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: names.SuperNamespace(key, ns), Annotations: map[string]string{names.Cluster: key, names.Namespace: ns},
		}})
	}
	in := metav1.ObjectMeta{Namespace: names.SuperNamespace(key, "default"), Name: "shop"}
	w.add(w.directory.converted.services, &corev1.Service{
		ObjectMeta: in, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.80", ClusterIPs: []string{"10.96.0.80"}},
	})
	pod := &corev1.Pod{ObjectMeta: in}
	pod.Status.PodIPs = []corev1.PodIP{{IP: podIP}}
	w.add(w.directory.converted.pods, pod)
	w.ports[key] = w.freePort()
	w.listenFor(key, w.ports[key])
	forged := metav1.ObjectMeta{
		Namespace: names.SuperNamespace("red", metav1.NamespaceSystem), Name: names.SharedDNSSlice, Labels: map[string]string{names.DNSPort: "1"},
	}
	w.add(w.directory.converted.slices, &discoveryv1.EndpointSlice{ObjectMeta: forged})
	if !w.reconcile(t.Context()) {
		t.Fatal("the ports are not open: only the platform's EndpointSlices open them")
	}
	const shop = "shop.default.svc.cluster.local."
	w.shouldAnswer(query{podIP, key, "udp", shop, dns.TypeA, time.Second}, "10.96.0.80")
	w.shouldAnswer(query{podIP, key, "udp", "80.0.96.10.in-addr.arpa.", dns.TypePTR, time.Second}, shop)
	w.shouldAnswer(query{podIP, key, "udp", web, dns.TypeA, time.Second}, "NXDOMAIN")
	w.shouldAnswer(query{redPod, "red", "udp", shop, dns.TypeA, time.Second}, "NXDOMAIN")
	w.shouldBeDropped(query{redPod, key, "udp", shop, dns.TypeA, brief})
	w.shouldBeDropped(query{podIP, "red", "udp", web, dns.TypeA, brief})
}

package tenants

import (
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// labPod is a pod of red in another network than its other pods.
const labPod = "127.0.1.2"

// addLab adds the network lab of red, with a pod and the Services queue and
// workers.
func (w *world) addLab() {
	w.t.Helper()
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: names.SuperNamespace("red", namespace), Name: name, Labels: map[string]string{networkv1.Label: "lab"},
		}
	}
	w.addPodTo("lab", "pod-of-lab")
	addressed := func(ip string) corev1.ServiceSpec {
		return corev1.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}
	}
	w.add(w.directory.services, &corev1.Service{ObjectMeta: meta("default", "queue"), Spec: addressed("10.1.0.90")})
	w.add(w.directory.services, &corev1.Service{ObjectMeta: meta("default", "workers"), Spec: addressed(corev1.ClusterIPNone)})
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: meta("default", "workers-1"), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.1.9"}, Hostname: new("worker-0")}},
	}
	slice.Labels[discoveryv1.LabelServiceName] = "workers"
	w.add(w.directory.slices, slice)
	for namespace, service := range map[string]string{"default": names.APIService, metav1.NamespaceSystem: names.DNSService} {
		shared := &corev1.Service{ObjectMeta: meta(namespace, service), Spec: addressed("10.1.0.1")}
		shared.Labels[networkv1.Label] = "default"
		w.add(w.directory.services, shared)
		own := &corev1.Service{ObjectMeta: meta(namespace, service+"-lab"), Spec: addressed("10.1.0.91")}
		own.Labels[names.NetworkService] = service
		w.add(w.directory.services, own)
		leads := &discoveryv1.EndpointSlice{
			ObjectMeta: meta(namespace, service+"-lab"), AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.1.91"}}},
		}
		leads.Labels[discoveryv1.LabelServiceName] = service + "-lab"
		w.add(w.directory.slices, leads)
	}
}

// addPodTo adds a pod of red to a network, with the address of the one of lab.
func (w *world) addPodTo(network, name string) {
	w.t.Helper()
	p := podOf("red", name, labPod)
	p.Labels[networkv1.Label] = network
	w.add(w.directory.pods, p)
}

// TestNetworks: a pod gets the names of its own network, and of no other one, and
// those of the apiserver and the DNS in each.
func TestNetworks(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	w.addLab()
	for name, tt := range map[string]struct {
		name             string
		qtype            uint16
		ofDefault, ofLab string
	}{
		"a Service":            {web, dns.TypeA, "10.1.0.80", "NXDOMAIN"},
		"one of the other":     {"queue.default.svc.cluster.local.", dns.TypeA, "NXDOMAIN", "10.1.0.90"},
		"a headless Service":   {"db.default.svc.cluster.local.", dns.TypeA, "10.1.1.1", "NXDOMAIN"},
		"a pod of it":          {"db-0.db.default.svc.cluster.local.", dns.TypeA, "10.1.1.1", "NXDOMAIN"},
		"a pod of the other":   {"worker-0.workers.default.svc.cluster.local.", dns.TypeA, "NXDOMAIN", "10.1.1.9"},
		"a port":               {"_http._tcp.web.default.svc.cluster.local.", dns.TypeSRV, "0 100 80 web.default.svc.cluster.local.", "NXDOMAIN"},
		"an address":           {"80.0.1.10.in-addr.arpa.", dns.TypePTR, "web.default.svc.cluster.local.", ""},
		"one of the other's":   {"90.0.1.10.in-addr.arpa.", dns.TypePTR, "", "queue.default.svc.cluster.local."},
		"an address of a pod":  {"1.1.1.10.in-addr.arpa.", dns.TypePTR, "db-0.db.default.svc.cluster.local.", ""},
		"a pod's of the other": {"9.1.1.10.in-addr.arpa.", dns.TypePTR, "", "worker-0.workers.default.svc.cluster.local."},
		"a name for a Service": {"inside.default.svc.cluster.local.", dns.TypeA, "web.default.svc.cluster.local. 10.1.0.80", "NXDOMAIN"},
		"the apiserver":        {"kubernetes.default.svc.cluster.local.", dns.TypeA, "10.1.0.1", "10.1.0.91"},
		"the DNS":              {"kube-dns.kube-system.svc.cluster.local.", dns.TypeA, "10.1.0.1", "10.1.0.91"},
		"the network's API":    {"kubernetes-lab.default.svc.cluster.local.", dns.TypeA, "NXDOMAIN", "10.1.0.91"},
		"the network's DNS":    {"kube-dns-lab.kube-system.svc.cluster.local.", dns.TypeA, "NXDOMAIN", "10.1.0.91"},
		"a namespace":          {"default.svc.cluster.local.", dns.TypeA, "", ""},
		"outside":              {"www.example.com.", dns.TypeA, outside, outside},
	} {
		t.Run(name, func(*testing.T) {
			for _, network := range []string{"udp", "tcp"} {
				w.shouldAnswer(query{redPod, "red", network, tt.name, tt.qtype, time.Second}, tt.ofDefault)
				w.shouldAnswer(query{labPod, "red", network, tt.name, tt.qtype, time.Second}, tt.ofLab)
			}
		})
	}
}

// TestForgedServicesOfNetworks: the plain names lead to Services of the platform
// alone, and only when these lead somewhere.
func TestForgedServicesOfNetworks(t *testing.T) {
	for name, change := range map[string]func(*corev1.Service){
		"of the tenant's own":  func(s *corev1.Service) { delete(s.Labels, names.NetworkService) },
		"for another Service":  func(s *corev1.Service) { s.Labels[names.NetworkService] = names.DNSService },
		"in another network":   func(s *corev1.Service) { s.Labels[networkv1.Label] = "default" },
		"of another namespace": func(s *corev1.Service) { s.Namespace = names.SuperNamespace("red", "other") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, DefaultLimits())
			w.addLab()
			key := names.SuperNamespace("red", "default") + "/kubernetes-lab"
			own, _, err := w.directory.services.GetStore().GetByKey(key)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.directory.services.GetIndexer().Delete(own); err != nil {
				t.Fatal(err)
			}
			forged := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: names.SuperNamespace("red", "default"), Name: "kubernetes-lab",
					Labels: map[string]string{networkv1.Label: "lab", names.NetworkService: names.APIService},
				},
				Spec: corev1.ServiceSpec{ClusterIP: "10.1.0.66", ClusterIPs: []string{"10.1.0.66"}, Ports: []corev1.ServicePort{{Port: 443}}},
			}
			change(forged)
			w.add(w.directory.services, forged)
			w.shouldAnswer(query{labPod, "red", "udp", "kubernetes.default.svc.cluster.local.", dns.TypeA, time.Second}, "10.1.0.1")
		})
	}
	t.Run("without endpoints", func(t *testing.T) {
		w := newWorld(t, DefaultLimits())
		w.addLab()
		for _, slice := range w.directory.slicesOf(names.SuperNamespace("red", "default"), "kubernetes-lab") {
			if err := w.directory.slices.GetIndexer().Delete(slice); err != nil {
				t.Fatal(err)
			}
		}
		w.shouldAnswer(query{labPod, "red", "udp", "kubernetes.default.svc.cluster.local.", dns.TypeA, time.Second}, "10.1.0.1")
	})
}

// TestNetworksOfAnAddress: while pods of several networks have an address, as
// pods in the network of a node, it is answered with the names of neither.
func TestNetworksOfAnAddress(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	w.addLab()
	w.addPodTo("default", "heir")
	for _, name := range []string{web, "queue.default.svc.cluster.local."} {
		w.shouldAnswer(query{labPod, "red", "udp", name, dns.TypeA, time.Second}, "NXDOMAIN")
	}
	w.shouldAnswer(query{labPod, "red", "udp", "kubernetes.default.svc.cluster.local.", dns.TypeA, time.Second}, "10.1.0.1")
	former, err := reduce(podOf("red", "pod-of-lab", labPod))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.directory.pods.GetIndexer().Delete(former); err != nil {
		t.Fatal(err)
	}
	w.shouldAnswer(query{labPod, "red", "udp", web, dns.TypeA, time.Second}, "10.1.0.80")
}

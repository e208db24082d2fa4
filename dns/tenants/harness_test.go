package tenants

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Clients, by their addresses: pods of two tenants, and one that no one knows.
const (
	redPod   = "127.0.1.1"
	bluePod  = "127.0.2.1"
	stranger = "127.0.3.1"
)

// outside is the address of each name outside of tenants.
const outside = "192.0.2.53"

// world is two tenants with equal names, red and blue.
type world struct {
	*listeners

	t        testing.TB
	ports    map[string]uint16
	lastPort uint16
}

// newWorld fills a directory, and opens the ports of both tenants.
func newWorld(t testing.TB, limits Limits) *world {
	t.Helper()
	return newWorldWith(t, limits, answerOutside)
}

// newWorldWith returns one with another resolver of the platform.
func newWorldWith(t testing.TB, limits Limits, outside plugin.HandlerFunc) *world {
	t.Helper()
	directory := newSyncedDirectory(t)
	template, err := newTemplate(30)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ports: map[string]uint16{}, lastPort: 20_000, listeners: &listeners{
		host: "127.0.0.1", limits: limits, directory: directory, metrics: metrics,
		core: newCore(t, outside), template: *template, open: map[string]*listener{},
	}}
	w.addTenant("red", "10.1", redPod)
	w.addTenant("blue", "10.2", bluePod)
	if !w.reconcile(t.Context()) {
		t.Fatal("the ports are not open")
	}
	t.Cleanup(func() {
		for _, l := range w.open {
			l.close()
		}
	})
	return w
}

// newCore returns the plugins after the listeners.
func newCore(t testing.TB, next plugin.Handler) *dnsserver.Server {
	t.Helper()
	core, err := dnsserver.NewServer("dns://tests", []*dnsserver.Config{{
		Zone: ".", Plugin: []plugin.Plugin{func(plugin.Handler) plugin.Handler { return &namesHandler{Next: next} }},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// answerOutside answers like a resolver of the platform.
func answerOutside(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	if r.Question[0].Qtype == dns.TypeA {
		m.Answer = append(m.Answer, &dns.A{
			Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.ParseIP(outside),
		})
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// newSyncedDirectory returns a directory of a super cluster without objects.
func newSyncedDirectory(t testing.TB) *Directory {
	t.Helper()
	apiserver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case query.Has("sendInitialEvents"):
			w.WriteHeader(http.StatusUnprocessableEntity)
		case query.Has("watch"):
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		}
	}))
	t.Cleanup(apiserver.Close)
	super, err := kubernetes.NewForConfig(&rest.Config{Host: apiserver.URL})
	if err != nil {
		t.Fatal(err)
	}
	directory, err := NewDirectory(super)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel) // runs before the apiserver waits for its watches
	if err := directory.Run(ctx, func() {}); err != nil {
		t.Fatal(err)
	}
	if !cache.WaitForCacheSync(ctx.Done(), directory.HasSynced) {
		t.Fatal("the directory is not complete")
	}
	return directory
}

// addTenant adds the objects of a tenant. Their names are the same in each.
func (w *world) addTenant(key, net, podIP string) {
	w.t.Helper()
	w.ports[key] = w.freePort()
	for _, ns := range []string{"default", metav1.NamespaceSystem} {
		w.add(w.directory.namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: names.SuperNamespace(key, ns), Annotations: map[string]string{names.Cluster: key, names.Namespace: ns},
		}})
	}
	in := metav1.ObjectMeta{Namespace: names.SuperNamespace(key, "default"), Labels: map[string]string{networkv1.Label: "default"}}
	named := func(name string) metav1.ObjectMeta {
		meta := *in.DeepCopy()
		meta.Name = name
		return meta
	}
	http := []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}
	web := &corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{ClusterIP: net + ".0.80", ClusterIPs: []string{net + ".0.80"}, Ports: http}}
	db := &corev1.Service{ObjectMeta: named("db"), Spec: corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}, Ports: http}}
	elsewhere := &corev1.Service{ObjectMeta: named("elsewhere"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "www.example.com"}}
	inside := &corev1.Service{ObjectMeta: named("inside"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web.default.svc.cluster.local"}}
	annotated := &corev1.Service{ObjectMeta: named("annotated"), Spec: *db.Spec.DeepCopy()}
	annotated.Annotations = map[string]string{names.ExternalName: "web.default.svc.cluster.local"}
	for _, svc := range []*corev1.Service{web, db, elsewhere, inside, annotated} {
		w.add(w.directory.services, svc)
	}
	w.add(w.directory.slices, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: in.Namespace, Name: "db-1", Labels: map[string]string{discoveryv1.LabelServiceName: "db"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(80)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{net + ".1.1"}, Hostname: new("db-0")}},
	})
	w.listenFor(key, w.ports[key])
	w.addPod(key, "pod", podIP)
}

// listenFor adds the EndpointSlice that leads to the port of a tenant.
func (w *world) listenFor(key string, port uint16) {
	w.t.Helper()
	w.add(w.directory.slices, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.SuperNamespace(key, metav1.NamespaceSystem), Name: names.SharedDNSSlice,
		Labels: map[string]string{discoveryv1.LabelServiceName: "kube-dns", names.DNSPort: fmt.Sprint(port)},
	}})
}

// addPod adds a pod of a tenant at an address.
func (w *world) addPod(key, name, ip string) {
	w.t.Helper()
	w.add(w.directory.pods, podOf(key, name, ip))
}

func podOf(key, name, ip string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.SuperNamespace(key, "default"), Name: name, Labels: map[string]string{networkv1.Label: "default"},
	}}
	p.Status.PodIPs = []corev1.PodIP{{IP: ip}}
	return p
}

// add puts an object into a cache as the super cluster's watch does.
func (w *world) add(informer cache.SharedIndexInformer, obj any) {
	w.t.Helper()
	reduced, err := reduce(obj)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := informer.GetIndexer().Update(reduced); err != nil {
		w.t.Fatal(err)
	}
}

// freePort returns a port that is free for UDP and TCP, and no other tenant's.
func (w *world) freePort() uint16 {
	w.t.Helper()
	for w.lastPort++; w.lastPort < 32768; w.lastPort++ { // below those that clients have
		address := fmt.Sprintf("127.0.0.1:%d", w.lastPort)
		packets, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		defer packets.Close()
		if connections, err := net.Listen("tcp", address); err == nil {
			defer connections.Close()
			return w.lastPort
		}
	}
	w.t.Fatal("no port is free")
	return 0
}

// query is a query of a client at the port of a tenant.
type query struct {
	client, tenant, network, name string
	qtype                         uint16
	timeout                       time.Duration
}

// ask sends a query and returns the answer.
func (w *world) ask(q query) (*dns.Msg, error) {
	client := &dns.Client{Net: q.network, Timeout: q.timeout, Dialer: &net.Dialer{Timeout: q.timeout}}
	client.Dialer.LocalAddr = &net.UDPAddr{IP: net.ParseIP(q.client)}
	if q.network == "tcp" {
		client.Dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(q.client)}
	}
	m := new(dns.Msg).SetQuestion(q.name, q.qtype)
	answer, _, err := client.Exchange(m, fmt.Sprintf("127.0.0.1:%d", w.ports[q.tenant]))
	return answer, err
}

// text returns the data of the records of an answer, separated by spaces, or
// the code of the answer if it is not a success.
func text(m *dns.Msg) string {
	if m.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[m.Rcode]
	}
	var all []string
	for _, rr := range m.Answer {
		all = append(all, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	return strings.Join(all, " ")
}

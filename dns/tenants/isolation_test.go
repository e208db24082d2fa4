package tenants

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

const web = "web.default.svc.cluster.local."

// brief is a timeout for answers that do not come.
const brief = 300 * time.Millisecond

// shouldBeDropped fails if a query gets an answer.
func (w *world) shouldBeDropped(q query) {
	w.t.Helper()
	if answer, err := w.ask(q); err == nil {
		w.t.Errorf("%+v was answered: %q", q, text(answer))
	}
}

// shouldAnswer fails if a query does not get this answer.
func (w *world) shouldAnswer(q query, want string) {
	w.t.Helper()
	if q.network == "tcp" { // loses nothing
		q.timeout = 20 * time.Second
	}
	answer, err := w.ask(q)
	// Datagrams may be lost. Resolvers send them again, too.
	for tries := 1; err != nil && q.network == "udp" && tries < 5; tries++ {
		answer, err = w.ask(q)
	}
	if err != nil {
		w.t.Errorf("%+v: %v", q, err)
	} else if got := text(answer); got != want {
		w.t.Errorf("%+v: got %q, want %q", q, got, want)
	}
}

// TestForeignPods: a pod gets no answer at the port of another tenant, and
// strangers get none at all.
func TestForeignPods(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	for _, network := range []string{"udp", "tcp"} {
		for _, name := range []string{web, "www.example.com."} {
			w.shouldBeDropped(query{bluePod, "red", network, name, dns.TypeA, brief})
			w.shouldBeDropped(query{redPod, "blue", network, name, dns.TypeA, brief})
			w.shouldBeDropped(query{stranger, "red", network, name, dns.TypeA, brief})
		}
	}
	w.shouldAnswer(query{redPod, "red", "udp", web, dns.TypeA, time.Second}, "10.1.0.80")
}

// TestNewPod: the query of a pod whose address is not known yet waits for it.
func TestNewPod(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	answers := make(chan string, 1)
	go func() {
		answer, err := w.ask(query{stranger, "red", "udp", web, dns.TypeA, patience})
		if err != nil {
			answers <- err.Error()
			return
		}
		answers <- text(answer)
	}()
	eventually(t, func() bool { return len(w.open["red"].admission.waiting) == 1 })
	w.addPod("red", "new", stranger)
	if got := <-answers; got != "10.1.0.80" {
		t.Errorf("the new pod got %q", got)
	}
}

// TestReusedAddress: while the pods of two tenants have an address, as the super
// cluster tells it, neither is answered there; the one that keeps it is, and
// with its own names.
func TestReusedAddress(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	w.addPod("blue", "heir", redPod)
	w.shouldBeDropped(query{redPod, "red", "udp", web, dns.TypeA, brief})
	w.shouldBeDropped(query{redPod, "blue", "udp", web, dns.TypeA, brief})
	former, err := reduce(podOf("red", "pod", redPod))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.directory.pods.GetIndexer().Delete(former); err != nil {
		t.Fatal(err)
	}
	w.shouldBeDropped(query{redPod, "red", "udp", web, dns.TypeA, brief})
	w.shouldAnswer(query{redPod, "blue", "udp", web, dns.TypeA, time.Second}, "10.2.0.80")
}

// TestHostNetwork: pods in the network of a node share its address, each with
// the names of its own tenant.
func TestHostNetwork(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	const node = "127.0.4.1"
	for _, key := range []string{"red", "blue"} {
		p := podOf(key, "host", node)
		p.Spec.HostNetwork = true
		w.add(w.directory.pods, p)
	}
	w.shouldAnswer(query{node, "red", "udp", web, dns.TypeA, time.Second}, "10.1.0.80")
	w.shouldAnswer(query{node, "blue", "udp", web, dns.TypeA, time.Second}, "10.2.0.80")
}

// TestOnePort: of two tenants with one port, the second is not served there.
func TestOnePort(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	w.listenFor("blue", w.ports["red"])
	w.reconcile(t.Context())
	if len(w.open) != 1 || w.open["red"] == nil {
		t.Errorf("open are %v, want red's alone", w.open)
	}
	w.shouldBeDropped(query{bluePod, "red", "udp", web, dns.TypeA, brief})
}

// TestForgedListeners: an EndpointSlice of another name, or outside of the copy of
// kube-system, opens no port.
func TestForgedListeners(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	for _, forged := range []metav1.ObjectMeta{
		{Namespace: names.SuperNamespace("red", metav1.NamespaceSystem), Name: "tenants"},
		{Namespace: names.SuperNamespace("red", "default"), Name: names.SharedDNSSlice},
	} {
		forged.Labels = map[string]string{names.DNSPort: fmt.Sprint(w.freePort())}
		w.add(w.directory.slices, &discoveryv1.EndpointSlice{ObjectMeta: forged})
	}
	if got := w.wanted(); len(got) != 2 || got["red"].port != w.ports["red"] {
		t.Errorf("wanted are %v, red's port is %d", got, w.ports["red"])
	}
}

// TestListenersFollow: a port moves with its EndpointSlice, and closes with it.
func TestListenersFollow(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	former := w.ports["red"]
	w.ports["red"] = w.freePort()
	w.listenFor("red", w.ports["red"])
	w.reconcile(t.Context())
	w.shouldAnswer(query{redPod, "red", "udp", web, dns.TypeA, time.Second}, "10.1.0.80")
	packets, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", former))
	if err != nil {
		t.Fatalf("the former port is still open: %v", err)
	}
	packets.Close()
	for _, slice := range w.directory.listenerSlices() {
		if err := w.directory.slices.GetIndexer().Delete(slice); err != nil {
			t.Fatal(err)
		}
	}
	if w.reconcile(t.Context()); len(w.open) > 0 {
		t.Errorf("open are still %v", w.open)
	}
}

// TestAllAddresses: at a port of all addresses, as in a pod, clients get their
// answers from the address that they asked.
func TestAllAddresses(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	w.host, w.ports["red"] = "", w.freePort()
	w.listenFor("red", w.ports["red"])
	w.reconcile(t.Context())
	for _, network := range []string{"udp", "tcp"} {
		w.shouldAnswer(query{redPod, "red", network, web, dns.TypeA, time.Second}, "10.1.0.80")
		w.shouldBeDropped(query{bluePod, "red", network, web, dns.TypeA, brief})
	}
}

// TestFlood: a tenant that sends more than its share, to its own port and to
// another's, does not slow the other down.
func TestFlood(t *testing.T) {
	limits := DefaultLimits()
	limits.Rate, limits.Burst = 100, 10
	w := newWorld(t, limits)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var sent atomic.Int64
	for _, tenant := range []string{"red", "blue"} {
		go flood(ctx, t, redPod, w.ports[tenant], &sent)
	}
	eventually(t, func() bool { return sent.Load() > 10_000 })
	began := time.Now()
	for range 5 { // below the rate of blue, to which red is not charged
		w.shouldAnswer(query{bluePod, "blue", "udp", web, dns.TypeA, time.Second}, "10.2.0.80")
	}
	t.Logf("5 answers in %s, beside %d queries of the other tenant", time.Since(began), sent.Load())
}

// flood sends queries until ctx ends, and reads no answer.
func flood(ctx context.Context, t *testing.T, client string, port uint16, sent *atomic.Int64) {
	dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(client)}}
	conn, err := dialer.DialContext(ctx, "udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	packet, err := new(dns.Msg).SetQuestion(web, dns.TypeA).Pack()
	if err != nil {
		t.Error(err)
		return
	}
	for ctx.Err() == nil {
		if _, err := conn.Write(packet); err == nil {
			sent.Add(1)
		}
	}
}

// TestSlowOutside: a tenant whose queries wait for a resolver outside takes only
// its own places.
func TestSlowOutside(t *testing.T) {
	limits := DefaultLimits()
	limits.Concurrent = 4
	block := make(chan struct{})
	w := newWorldWith(t, limits, func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if r.Question[0].Name == "slow.example.com." {
			<-block
		}
		return answerOutside(ctx, w, r)
	})
	defer close(block)
	for range limits.Concurrent {
		go func() { _, _ = w.ask(query{redPod, "red", "udp", "slow.example.com.", dns.TypeA, brief}) }()
	}
	eventually(t, func() bool { return len(w.open["red"].admission.concurrent) == limits.Concurrent })
	w.shouldBeDropped(query{redPod, "red", "udp", web, dns.TypeA, brief})
	w.shouldAnswer(query{bluePod, "blue", "udp", "www.example.com.", dns.TypeA, time.Second}, outside)
}

// TestConnections: a tenant has a number of TCP connections, which others do not
// use up.
func TestConnections(t *testing.T) {
	limits := DefaultLimits()
	limits.Connections = 2
	w := newWorld(t, limits)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(redPod)}}
	for _, tenant := range []string{"red", "red", "blue", "blue", "blue"} {
		conn, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", w.ports[tenant]))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	eventually(t, func() bool { return len(w.open["red"].admission.connections) == 2 })
	w.shouldBeDropped(query{redPod, "red", "tcp", web, dns.TypeA, brief})
	w.shouldAnswer(query{bluePod, "blue", "tcp", web, dns.TypeA, time.Second}, "10.2.0.80")
	w.shouldAnswer(query{redPod, "red", "udp", web, dns.TypeA, time.Second}, "10.1.0.80")
}

// TestBroken: packets that are no queries, and a panic, end nothing.
func TestBroken(t *testing.T) {
	w := newWorldWith(t, DefaultLimits(), func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { panic("broken") })
	dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(redPod)}}
	conn, err := dialer.DialContext(t.Context(), "udp", fmt.Sprintf("127.0.0.1:%d", w.ports["red"]))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for size := range 64 {
		if _, err := conn.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	w.shouldAnswer(query{redPod, "red", "udp", "www.example.com.", dns.TypeA, time.Second}, "SERVFAIL")
	w.shouldAnswer(query{redPod, "red", "udp", web, dns.TypeA, time.Second}, "10.1.0.80")
	w.shouldAnswer(query{bluePod, "blue", "udp", web, dns.TypeA, time.Second}, "10.2.0.80")
}

// TestFinishedPods: the watch leaves out the pods that still show an address
// that they have no more.
func TestFinishedPods(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		if want := "status.phase!=" + string(phase); !contains(unfinished, want) {
			t.Errorf("%q does not say %s", unfinished, want)
		}
	}
}

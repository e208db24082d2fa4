package hosted

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/memtest"
)

var loopback = net.IPv4(127, 0, 0, 1)

// podsOf returns the ports for pods of a router's control planes.
func podsOf(t *testing.T, r *router, dir string) *podListeners {
	t.Helper()
	p := newPodListeners(t.Context(), Options{PodAddress: loopback, Keys: directories{dir}, Log: logr.Discard()}, r)
	t.Cleanup(p.stop)
	return p
}

// TestPodsWake: a control plane that sleeps wakes for a pod with credentials, at
// the port that it had before, and for no other client of that port.
func TestPodsWake(t *testing.T) {
	g := NewWithT(t)
	p := startSleeping(t, http.NotFoundHandler())
	pods := podsOf(t, p.router, p.dir)
	address, err := pods.listen("red")
	g.Expect(err).NotTo(HaveOccurred())
	ask := func(client *http.Client) <-chan answer {
		answered := make(chan answer, 1)
		go func() { answered <- p.getAt(t.Context(), client, address.String()) }()
		return answered
	}
	g.Eventually(ask(p.client(t, nothing)), "20s").Should(Receive(HaveField("Code", http.StatusServiceUnavailable)))
	blue := load(t, filepath.Join(p.dir, "blue", "pki"), "blue.vc.internal")
	g.Eventually(ask(p.client(t, certificateOf(blue))), "20s").Should(Receive(HaveField("Code", http.StatusUnauthorized)))
	g.Expect(p.woken).To(BeEmpty())

	pod := p.client(t, certificateOf(p.creds))
	held := ask(pod)
	g.Eventually(p.woken, "20s").Should(Receive())
	g.Expect(held).To(BeEmpty(), "held")
	p.run()
	g.Eventually(held, "20s").Should(Receive(HaveField("Code", http.StatusNotFound)))
	g.Eventually(ask(pod), "20s").Should(Receive(HaveField("Code", http.StatusNotFound)), "of the control plane that runs")
	g.Expect(p.woken).To(BeEmpty(), "woken once")
}

// TestPortsForPods: the port of a control plane stays the same as long as it is
// open, and after a restart if it is free.
func TestPortsForPods(t *testing.T) {
	g := NewWithT(t)
	r := startRouter(t, "")
	first := podsOf(t, r.router, r.dir)
	red, err := first.listen("red")
	g.Expect(err).NotTo(HaveOccurred())
	blue, err := first.listen("blue")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(red.String()).NotTo(Equal(blue.String()))
	g.Expect(first.listen("red")).To(Equal(red), "it is open")
	g.Expect(isOpen(t, red)).To(BeTrue())
	first.close("red")
	g.Expect(isOpen(t, red)).To(BeFalse())
	first.stop()
	g.Expect(isOpen(t, blue)).To(BeFalse())

	address, _ := blue.(*net.TCPAddr)
	taken, err := net.ListenTCP("tcp", address)
	g.Expect(err).NotTo(HaveOccurred())
	defer taken.Close()
	second := podsOf(t, r.router, r.dir)
	for _, name := range []string{"red", "blue", "never-ran"} {
		second.reopen(name)
	}
	g.Expect(second.open).To(HaveLen(1))
	g.Expect(second.listen("red")).To(HaveField("String()", red.String()))
	g.Expect(second.listen("blue")).NotTo(HaveField("String()", blue.String()), "another program has it")

	elsewhere := podsOf(t, r.router, r.dir)
	elsewhere.ip = net.IPv4(127, 0, 0, 2)
	second.stop()
	elsewhere.reopen("red")
	g.Expect(elsewhere.open).To(BeEmpty(), "the super cluster knows another address")
	g.Expect(os.WriteFile(filepath.Join(r.dir, "red", "pki", podAddressFile), []byte("127.0.0.2:0"), 0o600)).To(Succeed())
	elsewhere.reopen("red")
	g.Expect(elsewhere.open).To(BeEmpty(), "that is no port")
}

// TestPortsOfSleepersAreTaken: a control plane that is to run takes the port of
// one that sleeps if no other is free, and none of one that runs.
func TestPortsOfSleepersAreTaken(t *testing.T) {
	g := NewWithT(t)
	r := startRouter(t, "")
	pods := podsOf(t, r.router, r.dir)
	first, err := pods.listen("red")
	g.Expect(err).NotTo(HaveOccurred())
	address, _ := first.(*net.TCPAddr)
	pods.ports = PortRange{address.Port, address.Port}
	_, err = pods.listen("blue")
	g.Expect(err).To(MatchError(ErrNoPodPort))
	r.sleepers.add(serverName("red"), func() {})
	g.Expect(pods.listen("blue")).To(HaveField("String()", first.String()))
	pods.reopen("red")
	g.Expect(pods.open).To(And(HaveLen(1), HaveKey("blue")))
}

func isOpen(t *testing.T, address net.Addr) bool {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 20 * time.Second}).DialContext(t.Context(), "tcp", address.String())
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// TestAPortForPodsIsCheap: a sleeping control plane that pods can reach takes a
// goroutine and a few kilobytes.
func TestAPortForPodsIsCheap(t *testing.T) {
	g := NewWithT(t) // not parallel: it counts goroutines and memory
	const number = 2000
	r := startRouter(t, "")
	pods := podsOf(t, r.router, r.dir)
	pods.records = nil // files take no memory
	goroutines, heap, stacks := runtime.NumGoroutine(), memtest.Heap(), stackBytes()
	for i := range number {
		_, err := pods.listen(fmt.Sprint("sleeper-", i))
		g.Expect(err).NotTo(HaveOccurred())
	}
	t.Logf("%d bytes of the heap and %d of stacks for each of %d ports",
		(memtest.Heap()-heap)/number, (stackBytes()-stacks)/number, number)
	g.Expect((memtest.Heap() - heap + stackBytes() - stacks) / number).To(BeNumerically("<", 10<<10))
	g.Expect(runtime.NumGoroutine()).To(BeNumerically("<=", goroutines+number+2))
}

func stackBytes() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.StackInuse)
}

// TestPortsFollowControlPlanes: a control plane has its port while it runs or
// sleeps, and the same one when it runs again.
func TestPortsFollowControlPlanes(t *testing.T) {
	g := NewWithT(t)
	r := startRouter(t, "")
	h := &Host{opts: Options{PodAddress: loopback}, router: r.router, pods: podsOf(t, r.router, r.dir), planes: map[string]*ControlPlane{}}
	run := func() (*ControlPlane, net.Addr) {
		spec := Spec{Name: "red"}
		in, err := h.newInlet(spec)
		g.Expect(err).NotTo(HaveOccurred())
		h.planes[spec.Name] = &ControlPlane{spec: spec, inlet: in}
		return h.planes[spec.Name], in.Addr()
	}
	plane, port := run()
	g.Expect(isOpen(t, port)).To(BeTrue())
	h.forget(plane)
	g.Expect(isOpen(t, port)).To(BeFalse(), "it has stopped")

	plane, _ = run()
	h.router.sleepers.add(plane.ServerName(), func() {})
	h.forget(plane)
	g.Expect(isOpen(t, port)).To(BeTrue(), "it sleeps")
	plane, again := run()
	g.Expect(again.String()).To(Equal(port.String()))
	h.CloseRoute("red")
	g.Expect(isOpen(t, port)).To(BeTrue(), "it runs")
	h.forget(plane)
	g.Expect(isOpen(t, port)).To(BeFalse())

	g.Expect(h.Sleep(t.Context(), "red", func() {})).To(Succeed())
	g.Expect(isOpen(t, port)).To(BeTrue(), "it has slept since before the start of the host")
	h.CloseRoute("red")
	g.Expect(isOpen(t, port)).To(BeFalse(), "it is paused")

	super, err := h.newInlet(Spec{Name: "super", Stock: true})
	g.Expect(err).NotTo(HaveOccurred())
	defer super.shut()
	g.Expect(super.direct).NotTo(BeNil(), "its loopback client needs a port of its own")
}

package hosted

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/internal/newcomers"
)

// routed is a router with the inlets of some control planes.
type routed struct {
	*router

	inlets map[string]*inlet
	// dir has the PKI of each control plane in a directory.
	dir string
	end func()
}

// floodSize is how many connections to a router may have proven nothing, in tests.
const floodSize = 2 * heldPerName

func startRouter(t *testing.T, fallback string, planes ...string) *routed {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	r, err := listenRouter(net.IPv4(127, 0, 0, 1), 0, fallback, directories{dir})
	g.Expect(err).NotTo(HaveOccurred())
	r.hellos = newcomers.New(floodSize)
	all := &routed{router: r, dir: dir, inlets: map[string]*inlet{}}
	for _, name := range planes {
		all.inlets[name], err = newInlet(nil, PortRange{})
		g.Expect(err).NotTo(HaveOccurred())
		r.add(name, all.inlets[name])
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.start(ctx)
	all.end = sync.OnceFunc(func() {
		cancel()
		for _, in := range all.inlets {
			in.shut()
		}
		r.stop()
	})
	t.Cleanup(all.end)
	return all
}

// dial connects to the router and sends what a client sends first.
func (r *routed) dial(t *testing.T, hello func(net.Conn)) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.listener.Addr().String())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = conn.Close() })
	go hello(conn)
	return conn
}

// helloFor begins a handshake, which ends with the connection.
func helloFor(serverName string) func(net.Conn) {
	return func(conn net.Conn) {
		_ = tls.Client(conn, &tls.Config{ServerName: serverName, InsecureSkipVerify: true}).Handshake()
	}
}

// arrivesAt returns the control plane that a connection is handed to, and ""
// if it is closed.
func (r *routed) arrivesAt(t *testing.T, conn net.Conn) string {
	t.Helper()
	arrived := make(chan string, len(r.inlets)+1)
	for name, in := range r.inlets {
		go func() {
			if accepted, err := in.Accept(); err == nil {
				arrived <- name
				_ = accepted.Close()
			}
		}()
	}
	go func() {
		_, _ = io.ReadAll(conn) // the handshake reads too, and this ends when it does
		time.Sleep(50 * time.Millisecond)
		arrived <- ""
	}()
	select {
	case name := <-arrived:
		return name
	case <-time.After(20 * time.Second):
		t.Fatal("the connection neither arrives nor ends")
		return ""
	}
}

// TestRoutesByFurtherNames: a name of a control plane leads to it, awake or not,
// and a name of none does not.
func TestRoutesByFurtherNames(t *testing.T) {
	t.Parallel()
	known := map[string]string{"red.example.com": "red", "shop.example.org": "red", "blue.example.com": "blue", "blue.vc.internal": "red"}
	for name, want := range map[string]string{
		"red.vc.internal": "red", "red.example.com": "red", "RED.example.COM": "red", "shop.example.org": "red",
		"blue.example.com": "", "blue.vc.internal": "", "green.example.com": "", "a.red.example.com": "", "example.com": "", "": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRouter(t, "", "super", "red")
			r.names = func(_ context.Context, name string) (string, bool) {
				plane, found := known[name]
				return plane, found
			}
			conn := r.dial(t, helloFor(name))
			NewWithT(t).Expect(r.arrivesAt(t, conn)).To(Equal(want))
		})
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hello    func(net.Conn)
		fallback string
		want     string
	}{
		"its name":                     {helloFor("red.vc.internal"), "super", "red"},
		"its name in capitals":         {helloFor("RED.vc.INTERNAL"), "super", "red"},
		"a control plane that is away": {helloFor("blue.vc.internal"), "super", ""},
		"a part of a name":             {helloFor("re.vc.internal"), "super", ""},
		"the suffix alone":             {helloFor("a.red.vc.internal"), "super", ""},
		"no name":                      {helloFor(""), "super", "super"},
		"an IP address":                {helloFor("127.0.0.1"), "super", "super"},
		"another name":                 {helloFor("kubernetes.default.svc"), "super", "super"},
		"another name, no fallback":    {helloFor("kubernetes.default.svc"), "", ""},
		"a fallback that is away":      {helloFor("localhost"), "blue", ""},
		"plain HTTP":                   {func(c net.Conn) { _, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\n\r\n") }, "super", ""},
		"a client that hangs up":       {func(c net.Conn) { _ = c.Close() }, "super", ""},
		"a client that sends bit by bit": {func(c net.Conn) {
			helloFor("red.vc.internal")(&slowConn{Conn: c})
		}, "super", "red"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRouter(t, test.fallback, "super", "red")
			if got := r.arrivesAt(t, r.dial(t, test.hello)); got != test.want {
				t.Errorf("the connection arrives at %q, want %q", got, test.want)
			}
		})
	}
}

// slowConn sends a few bytes at a time.
type slowConn struct{ net.Conn }

func (c *slowConn) Write(p []byte) (written int, err error) {
	for len(p) > 0 && err == nil {
		n := min(7, len(p))
		if n, err = c.Conn.Write(p[:n]); err == nil {
			written, p = written+n, p[n:]
		}
		time.Sleep(time.Millisecond) // so that the segments are not joined
	}
	return written, err
}

// TestConnectionsWaitForAStart: a control plane that starts has a route before
// its server accepts.
func TestConnectionsWaitForAStart(t *testing.T) {
	r := startRouter(t, "", "red")
	conn := r.dial(t, helloFor("red.vc.internal"))
	NewWithT(t).Eventually(r.inlets["red"].connections, "20s").Should(HaveLen(1))
	if got := r.arrivesAt(t, conn); got != "red" {
		t.Errorf("the connection arrives at %q, want red", got)
	}
}

// TestARestartKeepsItsRoute: the inlet of the next run can be there before that
// of the last one is removed.
func TestARestartKeepsItsRoute(t *testing.T) {
	g := NewWithT(t)
	r := startRouter(t, "", "red")
	last := r.inlets["red"]
	next, err := newInlet(nil, PortRange{})
	g.Expect(err).NotTo(HaveOccurred())
	defer next.shut()
	r.add("red", next)
	r.remove("red", last)
	g.Expect(r.find("red.vc.internal")).To(BeIdenticalTo(next))
	r.remove("red", next)
	g.Expect(r.find("red.vc.internal")).To(BeNil())
}

// TestSilentClientsDoNotDelayAStop: nor do those whose control plane does not
// accept them.
func TestSilentClientsDoNotDelayAStop(t *testing.T) {
	g := NewWithT(t)
	r := startRouter(t, "", "red")
	silent := r.dial(t, func(net.Conn) {})
	r.dial(t, helloFor("red.vc.internal"))
	begin := time.Now()
	r.end()
	g.Expect(time.Since(begin)).To(BeNumerically("<", helloTimeout*9/10))
	_, err := silent.Read(make([]byte, 1))
	g.Expect(err).To(HaveOccurred())
}

func TestPortThatCannotBeUsed(t *testing.T) {
	r := startRouter(t, "")
	port, err := strconv.Atoi(r.port())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, test := range map[string]struct {
		ip   net.IP
		port int
		want string
	}{
		"a port in use":              {net.IPv4(127, 0, 0, 1), port, "is taken: choose another one"},
		"a port beyond all":          {net.IPv4(127, 0, 0, 1), 1 << 16, "listen on port 65536"},
		"an address of no interface": {net.IPv4(192, 0, 2, 1), 0, "of 192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := listenRouter(test.ip, test.port, "", nil)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestInlet(t *testing.T) {
	g := NewWithT(t)
	_, err := newInlet(net.IPv4(192, 0, 2, 1), PortRange{})
	g.Expect(err).To(MatchError(ContainSubstring("listen for clients without a server name")))

	in, err := newInlet(nil, PortRange{})
	g.Expect(err).NotTo(HaveOccurred())
	offer := func() (client net.Conn) {
		client, server := net.Pipe()
		go in.offer(server)
		return client
	}
	accept := func() net.Conn {
		conn, err := in.Accept()
		g.Expect(err).NotTo(HaveOccurred())
		return conn
	}
	ends := func(conn net.Conn) {
		_, err := conn.Read(make([]byte, 1))
		g.Expect(err).To(MatchError(io.EOF))
	}
	first := offer()
	g.Expect(accept().Close()).To(Succeed())
	ends(first)
	g.Expect(in.connections()).To(BeEmpty(), "a connection that is closed is still known")

	direct, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", in.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	accept()
	accepted, waiting := offer(), offer()
	accept()
	g.Eventually(in.connections).Should(HaveLen(3))
	in.shut()
	for _, conn := range []net.Conn{direct, accepted, waiting, offer()} {
		ends(conn)
	}
	g.Eventually(in.connections).Should(BeEmpty())
	_, err = in.Accept()
	g.Expect(err).To(MatchError(net.ErrClosed))
	in.shut()
}

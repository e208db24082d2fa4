package hosted

import (
	"context"
	"io"
	"net"
	"testing"

	. "github.com/onsi/gomega"
)

// TestConnectionsThatArePassedOnAreBounded: a host that does not respond holds a
// limited number of connections to a control plane, and those to others are still
// passed on.
func TestConnectionsThatArePassedOnAreBounded(t *testing.T) {
	g := NewWithT(t)
	silent, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	g.Expect(err).NotTo(HaveOccurred())
	defer silent.Close()
	r := startRouter(t, "")
	r.elsewhere = at(silent)
	pass := func(name string) (client net.Conn, done <-chan struct{}) {
		near, far := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.passOn(t.Context(), serverName(name), far, ofPeers)
		}()
		return near, ended
	}

	r.passed.number[serverName("red")] = passedPerPlane - 1
	first, done := pass("red")
	g.Eventually(func() int { return r.passed.of("red") }).Should(Equal(passedPerPlane))
	refused, ended := pass("red")
	g.Eventually(ended).Should(BeClosed())
	_, err = refused.Read(make([]byte, 1))
	g.Expect(err).To(MatchError(io.EOF))
	other, otherDone := pass("blue")
	g.Eventually(func() int { return r.passed.of("blue") }).Should(Equal(1))

	g.Expect(first.Close()).To(Succeed())
	g.Expect(other.Close()).To(Succeed())
	for range 2 {
		conn, err := silent.Accept()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conn.Close()).To(Succeed())
	}
	g.Eventually(done).Should(BeClosed())
	g.Eventually(otherDone).Should(BeClosed())
	g.Expect(r.passed.of("red")).To(Equal(passedPerPlane - 1))
	g.Expect(r.passed.number).NotTo(HaveKey(serverName("blue")))
}

// TestAClosedConnectionIsNotHeld: a client that stays when the other host has
// closed its connection is disconnected.
func TestAClosedConnectionIsNotHeld(t *testing.T) {
	g := NewWithT(t)
	other, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	g.Expect(err).NotTo(HaveOccurred())
	defer other.Close()
	r := startRouter(t, "")
	r.elsewhere = at(other)
	client := r.dial(t, func(net.Conn) {})
	go r.passOn(t.Context(), serverName("red"), client, ofPeers) // the client itself is never read or closed
	conn, err := other.Accept()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.passed.of("red")).To(Equal(1))
	g.Expect(conn.Close()).To(Succeed())
	g.Eventually(func() int { return r.passed.of("red") }).Should(BeZero())
}

func (p *passed) of(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.number[serverName(name)]
}

// at returns an Elsewhere that leads to a listener.
func at(listener net.Listener) Elsewhere {
	return func(context.Context, string) (Addresses, bool) {
		return Addresses{Peers: listener.Addr().String(), Pods: listener.Addr().String()}, true
	}
}

// TestPodsArePassedOn: connections to the port of a control plane that another host
// has taken over are passed on, until the port is closed, and not to itself.
func TestPodsArePassedOn(t *testing.T) {
	g := NewWithT(t)
	other, err := net.ListenTCP("tcp", &net.TCPAddr{IP: loopback})
	g.Expect(err).NotTo(HaveOccurred())
	defer other.Close()
	r := startRouter(t, "")
	r.elsewhere = at(other)
	pods := podsOf(t, r.router, r.dir)
	red, err := pods.listen("red")
	g.Expect(err).NotTo(HaveOccurred())
	pods.leave("red")
	g.Expect(pods.left()).To(Equal(1))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", red.String())
	g.Expect(err).NotTo(HaveOccurred())
	passed, err := other.Accept()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(passed.Close()).To(Succeed())
	_, err = conn.Read(make([]byte, 1))
	g.Expect(err).To(MatchError(io.EOF))
	g.Expect(conn.Close()).To(Succeed())

	r.elsewhere = func(context.Context, string) (Addresses, bool) { return Addresses{Pods: red.String()}, true }
	conn, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", red.String())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = conn.Read(make([]byte, 1))
	g.Expect(err).To(MatchError(io.EOF), "its own address is outdated")
	g.Expect(conn.Close()).To(Succeed())

	g.Expect(pods.listen("red")).To(Equal(red), "it comes back")
	g.Expect(pods.left()).To(BeZero())
	pods.leave("red")
	g.Eventually(func() bool { return isOpen(t, red) }).WithTimeout(5 * podLinger).Should(BeFalse())
	g.Expect(pods.left()).To(BeZero())

	blue, err := pods.listen("blue")
	g.Expect(err).NotTo(HaveOccurred())
	pods.leave("blue")
	address, _ := blue.(*net.TCPAddr)
	pods.ports = PortRange{address.Port, address.Port}
	g.Expect(pods.listen("green")).To(HaveField("String()", blue.String()), "one that is to run needs it")
}

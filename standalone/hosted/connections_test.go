package hosted

import (
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// pipes returns a number of connections, each with its other end.
func pipes(t *testing.T, number int) (near, far []net.Conn) {
	t.Helper()
	for range number {
		a, b := net.Pipe()
		near, far = append(near, a), append(far, b)
		t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	}
	return near, far
}

// isClosed reports whether the other end of a connection was closed.
func isClosed(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	timeout, ok := err.(net.Error) //nolint:errorlint // of net itself
	return !ok || !timeout.Timeout()
}

// TestConnectionsOfAControlPlane: those without an authorized request are
// limited, and displace neither the users' nor the platform's. Users have a
// limit of their own, which the platform's do not count for.
func TestConnectionsOfAControlPlane(t *testing.T) {
	g := NewWithT(t)
	in, err := newInlet(nil, PortRange{})
	g.Expect(err).NotTo(HaveOccurred())
	defer in.shut()
	accept := func(conn net.Conn) *inletConn {
		go in.offer(conn) // ends with Accept
		accepted, err := in.Accept()
		g.Expect(err).NotTo(HaveOccurred())
		tracked, _ := accepted.(*inletConn)
		return tracked
	}
	near, far := pipes(t, newcomersPerPlane+12)
	user, platform := accept(near[0]), accept(near[1])
	g.Expect(user.use()).To(BeTrue())
	g.Expect(user.use()).To(BeTrue(), "at each request")
	platform.exempt()
	g.Expect(in.users).To(Equal(1))
	for _, conn := range near[2:] {
		accept(conn)
	}
	g.Eventually(in.newcomers.Count).Should(Equal(newcomersPerPlane))
	g.Expect(in.connections()).To(HaveLen(newcomersPerPlane + 2))
	g.Expect([]bool{isClosed(far[0]), isClosed(far[1]), isClosed(far[2]), isClosed(far[len(far)-1])}).To(
		Equal([]bool{false, false, true, false}))

	in.mu.Lock()
	in.users = usersPerPlane
	in.mu.Unlock()
	last := in.connections()
	newest := last[0]
	for _, conn := range last {
		if conn != user && conn != platform {
			newest = conn
		}
	}
	g.Expect(newest.use()).To(BeFalse())
	g.Expect(user.use()).To(BeTrue(), "it has its place")
	g.Expect(platform.use()).To(BeTrue(), "it needs none")
	g.Expect(user.Close()).To(Succeed())
	g.Expect(user.Close()).To(Succeed())
	g.Expect(in.users).To(Equal(usersPerPlane - 1))
	g.Expect(newest.use()).To(BeTrue())
}

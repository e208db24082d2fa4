package hosted

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/newcomers"
)

// inlet is the listener of one control plane's server. It accepts connections
// from the router. Clients that cannot send a server name, which the router
// needs, are those in pods, for which there are podListeners, and the loopback
// client of upstream's kube-apiserver, for which the inlet has a port of its own.
type inlet struct {
	*queue

	// direct is the port of its own; nil if there is none.
	direct net.Listener
	feeder sync.WaitGroup
	// serves is the handler of the server; nil until it has started.
	serves atomic.Pointer[http.Handler]

	// newcomers are the open connections without an authorized request.
	newcomers *newcomers.Set

	mu   sync.Mutex
	open map[*inletConn]struct{}
	// users is the number of open connections of users.
	users int
}

// newInlet opens one of the ports at the address for pods; with nil, only the
// loopback client can connect.
func newInlet(pods net.IP, ports PortRange) (*inlet, error) {
	if pods == nil {
		pods, ports = net.IPv4(127, 0, 0, 1), PortRange{}
	}
	direct, err := ports.listen(pods)
	if err != nil {
		return nil, fmt.Errorf("listen for clients without a server name: %w", err)
	}
	in := newInletAt(direct.Addr())
	in.direct = direct
	in.feeder.Go(in.feed)
	return in, nil
}

// newInletAt returns an inlet without a port of its own. Others pass connections
// to the address to it.
func newInletAt(address net.Addr) *inlet {
	return &inlet{queue: newQueue(address), open: map[*inletConn]struct{}{}, newcomers: newcomers.New(newcomersPerPlane)}
}

func (in *inlet) feed() {
	for {
		conn, err := in.direct.Accept()
		switch {
		case err == nil:
			in.offer(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of file descriptors, most likely
			pause(in.closed, acceptRetry)
		}
	}
}

// pause waits for the time to pass or for stop to be closed.
func pause(stop <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	}
}

// offer passes a connection to the server, or closes it if the server has
// stopped.
func (in *inlet) offer(conn net.Conn) {
	if tracked := in.track(conn); !in.put(tracked) {
		_ = tracked.Close()
	}
}

// track adds a connection to those that are closed with the inlet.
func (in *inlet) track(conn net.Conn) *inletConn {
	tracked := &inletConn{Conn: conn, inlet: in}
	in.mu.Lock()
	in.open[tracked] = struct{}{}
	in.mu.Unlock()
	in.greet(tracked)
	select {
	case <-in.closed: // it was perhaps too late for Close
		_ = tracked.Close()
	default:
	}
	return tracked
}

// greet adds a connection to the newcomers. It may close another one, which
// needs the mutex.
func (in *inlet) greet(conn *inletConn) {
	leave := in.newcomers.Add(conn)
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, open := in.open[conn]; !open {
		leave() // another connection has displaced it meanwhile
		return
	}
	conn.leave = leave
}

// Close closes the inlet and all its connections. The server calls it when no
// request is in flight any more, so that connections are idle, and would only
// delay the server's stop.
func (in *inlet) Close() error {
	err := in.refuse()
	for _, conn := range in.connections() {
		_ = conn.Close()
	}
	return err
}

// refuse has no further connections accepted.
func (in *inlet) refuse() error {
	in.close()
	if in.direct == nil {
		return nil
	}
	return in.direct.Close()
}

// handler returns the handler of the server; nil until it has started.
func (in *inlet) handler() http.Handler {
	if serves := in.serves.Load(); serves != nil {
		return *serves
	}
	return nil
}

// shut closes the inlet, if the server has not, and waits for it.
func (in *inlet) shut() {
	_ = in.Close() // fails if the port is closed already
	in.feeder.Wait()
}

func (in *inlet) connections() []*inletConn {
	in.mu.Lock()
	defer in.mu.Unlock()
	conns := make([]*inletConn, 0, len(in.open))
	for conn := range in.open {
		conns = append(conns, conn)
	}
	return conns
}

package hosted

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// inlet is the listener of one control plane's server. It accepts connections
// from the router, and, through a port of its own, those of clients that cannot
// send a server name, which the router needs: the server's loopback client and
// clients in pods.
type inlet struct {
	direct net.Listener
	conns  chan net.Conn
	closed chan struct{}
	close  func()
	feeder sync.WaitGroup

	// newcomers are the open connections without an authorized request.
	newcomers *newcomers

	mu   sync.Mutex
	open map[*inletConn]struct{}
	// users is the number of open connections of users.
	users int
}

// newInlet opens the port at the address for pods; with nil, only the loopback
// client can connect.
func newInlet(pods net.IP) (*inlet, error) {
	if pods == nil {
		pods = net.IPv4(127, 0, 0, 1)
	}
	direct, err := net.ListenTCP("tcp", &net.TCPAddr{IP: pods})
	if err != nil {
		return nil, fmt.Errorf("listen for clients without a server name: %w", err)
	}
	in := &inlet{
		direct: direct,
		conns:  make(chan net.Conn),
		closed: make(chan struct{}),
		open:   map[*inletConn]struct{}{},

		newcomers: newNewcomers(newcomersPerPlane),
	}
	in.close = sync.OnceFunc(func() { close(in.closed) })
	in.feeder.Go(in.feed)
	return in, nil
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
	tracked := &inletConn{Conn: conn, inlet: in}
	in.mu.Lock()
	in.open[tracked] = struct{}{}
	in.mu.Unlock()
	in.greet(tracked)
	select {
	case in.conns <- tracked:
	case <-in.closed:
		_ = tracked.Close() // the server has stopped
	}
}

// greet adds a connection to the newcomers. It may close another one, which
// needs the mutex.
func (in *inlet) greet(conn *inletConn) {
	leave := in.newcomers.add(conn)
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, open := in.open[conn]; !open {
		leave() // another connection has displaced it meanwhile
		return
	}
	conn.leave = leave
}

// Accept returns an error only after Close: the server would panic.
func (in *inlet) Accept() (net.Conn, error) {
	select {
	case conn := <-in.conns:
		return conn, nil
	case <-in.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the inlet and all its connections. The server calls it when no
// request is in flight any more, so that connections are idle, and would only
// delay the server's stop.
func (in *inlet) Close() error {
	in.close()
	err := in.direct.Close()
	for _, conn := range in.connections() {
		_ = conn.Close()
	}
	return err
}

// Addr returns the address for the loopback client.
func (in *inlet) Addr() net.Addr { return in.direct.Addr() }

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

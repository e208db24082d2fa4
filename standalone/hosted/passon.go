package hosted

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// passOnTimeout limits a connection to another host.
	passOnTimeout = 3 * time.Second
	// passOnLinger is how long a client may still send after the other host has
	// closed a connection.
	passOnLinger = time.Second
	// passedPerPlane bounds the connections to a control plane that are passed on at
	// a time. The other host has its own limits, and closes those in excess; the
	// bound is for one that does not respond.
	passedPerPlane = newcomersPerPlane + usersPerPlane + platformPerPlane
	// platformPerPlane is how many of them are for the platform, to which the other
	// host applies no limit.
	platformPerPlane = 256
)

// Elsewhere returns the addresses at which another host accepts connections for a
// control plane. It reports false if no other host has it.
type Elsewhere func(ctx context.Context, controlPlane string) (at Addresses, found bool)

// Addresses are those of a control plane at a host, as HOST:PORT.
type Addresses struct {
	// Peers is for connections that name the control plane, and Pods, which may be
	// empty, for those that do not.
	Peers, Pods string
}

func ofPeers(at Addresses) string { return at.Peers }

func ofPods(at Addresses) string { return at.Pods }

// passOn passes a connection on to one of the addresses of the host that has the
// control plane, unread except for its server name. It ends with the connection.
func (r *router) passOn(ctx context.Context, serverName string, conn net.Conn, of func(Addresses) string) {
	defer conn.Close() //nolint:errcheck // nothing depends on it
	end, ok := r.passed.begin(serverName)
	if !ok {
		return
	}
	defer end()
	at, found := r.elsewhere(ctx, strings.TrimSuffix(serverName, serverNameSuffix))
	address := of(at)
	if !found || address == "" || address == conn.LocalAddr().String() { // that of this host is outdated
		return
	}
	dialer := net.Dialer{Timeout: passOnTimeout}
	other, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil { // the client retries
		return
	}
	defer other.Close() //nolint:errcheck // nothing depends on it
	defer context.AfterFunc(ctx, func() { _ = errors.Join(conn.Close(), other.Close()) })()
	var copying sync.WaitGroup
	copying.Go(func() { pour(other, conn) })
	pour(conn, other)
	// A client that stays must not hold what the other host has closed.
	_ = conn.SetReadDeadline(time.Now().Add(passOnLinger))
	copying.Wait()
}

// pour copies what one connection sends to the other, and its end.
func pour(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
		return
	}
	_ = errors.Join(to.Close(), from.Close())
}

// passed counts the connections that are passed on, by server name.
type passed struct {
	mu     sync.Mutex
	number map[string]int
}

func newPassed() *passed { return &passed{number: map[string]int{}} }

// begin counts a connection until end is called. It reports false if there are
// too many.
func (p *passed) begin(serverName string) (end func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.number[serverName] >= passedPerPlane {
		return nil, false
	}
	p.number[serverName]++
	return func() { p.end(serverName) }, true
}

func (p *passed) end(serverName string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.number[serverName]--; p.number[serverName] == 0 {
		delete(p.number, serverName)
	}
}

package vnagent

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// connectionsPerStream is how many connections a tenant may have open for each
// stream that it may have.
const connectionsPerStream = 2

// connections bounds how many connections each tenant's apiserver keeps open,
// so that none takes the agent's from the others. One that has become a stream
// of its own protocol counts as that stream instead.
type connections struct {
	tenants tenants
	limit   *limit
	// open has what gives each connection back. A server tells of the states of
	// one connection one after the other.
	open sync.Map
}

func newConnections(tenants tenants, most int) *connections {
	return &connections{tenants: tenants, limit: newLimit(most)}
}

// follow returns the hook by which a server tells of its connections
// (http.Server.ConnState).
func (c *connections) follow(ctx context.Context) func(net.Conn, http.ConnState) {
	return func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateActive:
			c.admit(ctx, conn)
		case http.StateHijacked, http.StateClosed:
			c.release(conn)
		case http.StateNew, http.StateIdle:
		}
	}
}

// admit counts a connection with its first request, and closes one that is too
// much. The handshake has found out whose it is.
func (c *connections) admit(ctx context.Context, conn net.Conn) {
	if _, counted := c.open.Load(conn); counted {
		return
	}
	giveBack, ok := c.take(ctx, conn)
	if !ok {
		_ = conn.Close()
		return
	}
	c.open.Store(conn, giveBack)
}

func (c *connections) take(ctx context.Context, conn net.Conn) (giveBack func(), ok bool) {
	secured, ok := conn.(*tls.Conn)
	if !ok {
		return nil, false
	}
	shown := secured.ConnectionState().PeerCertificates
	if len(shown) == 0 {
		return nil, false
	}
	who, err := c.tenants.identify(ctx, shown[0], time.Now())
	if err != nil {
		return nil, false
	}
	return c.limit.take(who.uid)
}

func (c *connections) release(conn net.Conn) {
	if giveBack, counted := c.open.LoadAndDelete(conn); counted {
		giveBack.(func())()
	}
}

package chain

import (
	"context"
	"net"
	"sync"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// network is the network of a tenant. It closes the tenant's connections when
// the tenant is removed: upstream's clients keep idle ones.
type network struct {
	inner egress.Network

	mu     sync.Mutex // guards all below
	open   map[*conn]struct{}
	closed bool
}

// newNetwork returns the network of a tenant; none connects to nothing.
func newNetwork(inner egress.Network) *network {
	if inner == nil {
		inner = egress.Closed{}
	}
	return &network{inner: inner, open: map[*conn]struct{}{}}
}

// Dialer implements egress.Network.
func (n *network) Dialer(purpose egress.Purpose) egress.Dial {
	dial := n.inner.Dialer(purpose)
	return func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		// HTTP clients dial in goroutines of their own.
		defer views.Recovered(func(panicked error) { err = panicked })
		dialed, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: dialed, network: n}
		if !n.add(c) {
			_ = dialed.Close()
			return nil, net.ErrClosed
		}
		return c, nil
	}
}

func (n *network) add(c *conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.open[c] = struct{}{}
	return true
}

func (n *network) remove(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, c)
}

// close closes all connections. No new one can be opened.
func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for c := range n.open {
		_ = c.Conn.Close()
	}
	clear(n.open)
}

// conn is a connection of a tenant.
type conn struct {
	net.Conn

	network *network
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.network.remove(c)
	return c.Conn.Close()
}

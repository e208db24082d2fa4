package hosted

import (
	"context"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// newcomersPerPlane bounds the connections to a control plane on which no
	// request has been authorized: any client that knows its name can open them.
	newcomersPerPlane = 256
	// usersPerPlane bounds the connections of a control plane's own clients.
	usersPerPlane = 2000
	// hellosPerHost bounds the connections to the host's port that have not
	// named a control plane.
	hellosPerHost = 4096
)

// inletConn removes itself from its inlet when it is closed.
type inletConn struct {
	net.Conn
	inlet *inlet

	// Guarded by the inlet's mutex.

	// leave takes it out of the newcomers; nil if it is none.
	leave func()
	// isUser means that it counts as one of the users' connections.
	isUser bool
}

// Close implements net.Conn.
func (c *inletConn) Close() error {
	c.inlet.mu.Lock()
	delete(c.inlet.open, c)
	c.lockedSettle()
	if c.isUser {
		c.isUser = false
		c.inlet.users--
	}
	c.inlet.mu.Unlock()
	return c.Conn.Close()
}

// lockedSettle takes the connection out of the newcomers.
func (c *inletConn) lockedSettle() {
	if c.leave != nil {
		c.leave()
		c.leave = nil
	}
}

// exempt makes it a connection that no limit applies to: the platform's.
func (c *inletConn) exempt() {
	c.inlet.mu.Lock()
	defer c.inlet.mu.Unlock()
	c.lockedSettle()
}

// use makes it a connection of a user, and reports whether there may be one
// more.
func (c *inletConn) use() bool {
	c.inlet.mu.Lock()
	defer c.inlet.mu.Unlock()
	switch _, open := c.inlet.open[c]; {
	case c.leave == nil, !open: // it is one already, exempt, or displaced
		return true
	case c.inlet.users >= usersPerPlane:
		return false
	}
	c.lockedSettle()
	c.isUser = true
	c.inlet.users++
	return true
}

// LocalAddr implements net.Conn. A server passes the address to its handlers,
// which find the connection of a request by it.
func (c *inletConn) LocalAddr() net.Addr { return connAddr{c.Conn.LocalAddr(), c} }

type connAddr struct {
	net.Addr
	conn *inletConn
}

// connectionOf returns the connection of a request; nil if it has none, as
// those of the control plane's own controllers.
func connectionOf(ctx context.Context) *inletConn {
	if addr, ok := ctx.Value(http.LocalAddrContextKey).(connAddr); ok {
		return addr.conn
	}
	return nil
}

// admitConnections returns a handler that is called for authorized requests. It
// recognizes the connections of the platform and of users.
func (c *ControlPlane) admitConnections(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := connectionOf(r.Context())
		switch {
		case conn == nil:
		case isInternal(r.Context()), c.creds.isPlatform(r.TLS):
			conn.exempt()
		case !isAnonymous(r) && !conn.use():
			w.Header().Set("Connection", "close")
			err := apierrors.NewTooManyRequests("this cluster has as many connections as it may have: close some", retryAfter)
			responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{}, w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

package share

import (
	"context"
	"errors"
	"net"
	"time"
)

const (
	// dialTimeout and keepAlive are those of client-go.
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// dialer opens connections.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dial returns a dialer whose connections send no data after the period in which
// they were requested.
func (f *fence) dial(next dialer) dialer {
	if next == nil {
		next = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		during := f.current()
		made, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: made, during: during}
		c.release = context.AfterFunc(during.closed, c.reset)
		return c, nil
	}
}

// conn is a connection that is closed at the end of a period.
type conn struct {
	net.Conn
	during  *period
	release func() bool
}

// Write sends bytes, unless the period has ended.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.during.check(time.Now()); errors.Is(err, errLapsed) {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Close closes the connection.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}

// reset closes the connection and discards unsent data, which the kernel would
// otherwise retransmit.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
}

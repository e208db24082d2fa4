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

// passOnTimeout limits a connection to another host.
const passOnTimeout = 3 * time.Second

// Elsewhere returns the address at which another host accepts connections for a
// control plane.
type Elsewhere func(ctx context.Context, controlPlane string) (address string, found bool)

// passOn passes a connection on to the host that has the control plane, unread
// except for its server name. It ends with the connection.
func (r *router) passOn(ctx context.Context, serverName string, conn net.Conn) {
	defer conn.Close() //nolint:errcheck // nothing depends on it
	address, found := r.elsewhere(ctx, strings.TrimSuffix(serverName, serverNameSuffix))
	if !found {
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

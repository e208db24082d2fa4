package forward

import (
	"context"
	"net"
	"time"
)

// passIdle is how long a connection is passed on without a byte in either
// direction. Apiservers and clients send pings more often.
const passIdle = 30 * time.Minute

// passBufferBytes is the size of the buffer of a direction: that of a TLS record.
const passBufferBytes = 16 << 10

// Pass passes a connection on to the apiserver as it is, until one side ends it,
// the way is closed or ctx ends. It closes the connection.
func (w *Way) Pass(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := w.dial(ctx, "tcp", w.address())
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	defer context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})()
	ended := make(chan struct{})
	go func() { // ends when either connection is closed
		defer close(ended)
		splice(server, client)
	}()
	splice(client, server)
	<-ended
}

// splice copies until an end or an error, and then ends both directions: TLS
// has no use for a connection that is open in one.
func splice(to, from net.Conn) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	buffer := make([]byte, passBufferBytes)
	for {
		_ = from.SetReadDeadline(time.Now().Add(passIdle)) // fails with the read
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// address returns the host and port of the apiserver.
func (w *Way) address() string {
	if w.server.Port() != "" {
		return w.server.Host
	}
	return net.JoinHostPort(w.server.Hostname(), "443")
}

package local

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// Target returns where a connection is passed on, and the connection with what was
// read of it. An empty address closes it.
type Target func(ctx context.Context, conn net.Conn) (address string, passed net.Conn)

// Forwarder is a port whose connections are passed on.
type Forwarder struct {
	Address string

	listener net.Listener
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

// Forward opens a free port until Stop.
func Forward(ctx context.Context, to Target) (*Forwarder, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for connections to pass on: %w", err)
	}
	f := &Forwarder{Address: listener.Addr().String(), listener: listener}
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.work.Go(func() { pass(ctx, conn, to) })
		}
	})
	return f, nil
}

// Stop closes the port and all connections.
func (f *Forwarder) Stop() {
	f.cancel()
	_ = f.listener.Close()
	f.work.Wait()
}

func pass(ctx context.Context, conn net.Conn, to Target) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	address, passed := to(ctx, conn)
	if address == "" {
		return
	}
	other, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = other.Close() }()
	defer context.AfterFunc(ctx, func() { _ = other.Close() })()
	var copying sync.WaitGroup
	copying.Go(func() { pour(other, passed) })
	copying.Go(func() { pour(conn, other) })
	copying.Wait()
}

func pour(to io.WriteCloser, from io.Reader) {
	defer func() { _ = to.Close() }()
	_, _ = io.Copy(to, from)
}

// errNamed ends the handshake of serverNameOf.
var errNamed = errors.New("the client has sent a name")

// BelowDomain passes TLS connections on, as they are, whose server name is one
// label below a domain, as an Ingress controller does for the host *.DOMAIN.
func BelowDomain(domain, address string) Target {
	return func(ctx context.Context, conn net.Conn) (string, net.Conn) {
		name, conn := serverNameOf(ctx, conn)
		label, below := strings.CutSuffix(name, "."+domain)
		if !below || label == "" || strings.Contains(label, ".") {
			return "", conn
		}
		return address, conn
	}
}

// serverNameOf reads the server name that a client sends, and returns the
// connection as it was before.
func serverNameOf(ctx context.Context, conn net.Conn) (string, net.Conn) {
	var name string
	seen := &bytes.Buffer{}
	_ = tls.Server(&readOnly{conn, io.TeeReader(conn, seen)}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name = hello.ServerName
			return nil, errNamed
		},
	}).HandshakeContext(ctx)
	return name, &replayed{conn, io.MultiReader(seen, conn)}
}

// readOnly is a connection to which nothing is written.
type readOnly struct {
	net.Conn
	from io.Reader
}

func (c *readOnly) Read(p []byte) (int, error) { return c.from.Read(p) }

func (c *readOnly) Write(p []byte) (int, error) { return len(p), nil }

// replayed is a connection that is read from the start again.
type replayed struct {
	net.Conn
	from io.Reader
}

func (c *replayed) Read(p []byte) (int, error) { return c.from.Read(p) }

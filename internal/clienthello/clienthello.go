// Package clienthello tells which server a TLS client asks for, before a
// server answers it.
package clienthello

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
)

// errHelloRead aborts the handshake of Peek after the client hello.
var errHelloRead = errors.New("client hello read")

// Peek reads the TLS client hello and returns the server name in it,
// which may be empty, and a connection that replays all bytes from the start.
// When ctx ends, it closes the connection and returns an error.
func Peek(ctx context.Context, conn net.Conn) (string, net.Conn, error) {
	var name string
	var seen bytes.Buffer
	err := tls.Server(&helloConn{Conn: conn, seen: &seen}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name = hello.ServerName
			return nil, errHelloRead
		},
	}).HandshakeContext(ctx)
	if !errors.Is(err, errHelloRead) {
		return "", conn, fmt.Errorf("read the client hello: %w", err)
	}
	return name, &replayedConn{Conn: conn, rest: io.MultiReader(&seen, conn)}, nil
}

// helloConn records what is read from a connection and never writes to it: the
// client must not receive an alert about the aborted handshake.
type helloConn struct {
	net.Conn
	seen *bytes.Buffer
}

func (c *helloConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.seen.Write(p[:n])
	return n, err
}

func (c *helloConn) Write(p []byte) (int, error) { return len(p), nil }

// replayedConn replays the recorded bytes, and then reads from the connection.
type replayedConn struct {
	net.Conn
	rest io.Reader
}

func (c *replayedConn) Read(p []byte) (int, error) { return c.rest.Read(p) }

// CloseWrite tells the client that no more follows.
func (c *replayedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

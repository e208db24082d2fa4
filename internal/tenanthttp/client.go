// Package tenanthttp makes the HTTP clients by which the platform reads from
// tenants' apiservers. Such an apiserver is not trusted: an answer may be
// false, endless, or a redirect. A client follows no redirect, neither requests
// nor accepts compressed answers, and reads a bounded number of bytes in a
// bounded time.
package tenanthttp

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 10 * time.Second
	keepAlive        = 30 * time.Second
	idleTimeout      = 90 * time.Second
	// headerTimeout is how long an apiserver may take to begin an answer.
	headerTimeout = 30 * time.Second
	// maxHeaders bounds the headers of an answer, interim ones included.
	maxHeaders = 64 << 10
	// streamBuffer and connBuffer bound what HTTP/2 holds of answers that are
	// not read yet: of one, and of all of a connection.
	streamBuffer = 1 << 20
	connBuffer   = 32 << 20
)

// Options are what a client is made of beside its configuration.
type Options struct {
	// Limits bound what is read.
	Limits Limits
	// Untrusted is set for an apiserver that the platform does not run. Its
	// answers have to be in JSON, whose size in memory can be estimated before
	// it is decoded.
	Untrusted bool
	// Refused is called for every list and watch whose answer was refused. It
	// may be nil.
	Refused func(error)
}

// NewClient makes a client with a transport of its own: client-go would share
// one among tenants and keep it for ever. Its connections are made with the
// Dial of the configuration, and closed when ctx ends, streams that are still
// open included.
func NewClient(ctx context.Context, config *rest.Config, opts Options) (*http.Client, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the TLS settings of the kubeconfig: %w", err)
	}
	dial := config.Dial
	if dial == nil {
		dial = Dialer()
	}
	base := utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig:        tlsConfig,
		DialContext:            DialUntil(ctx, dial),
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaders,
		DisableCompression:     true,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connBuffer},
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, newBounded(base, opts))
	if err != nil {
		return nil, fmt.Errorf("read the credentials of the kubeconfig: %w", err)
	}
	return &http.Client{Transport: connected{wrapped, base}, CheckRedirect: refuseRedirect}, nil
}

// connected is a transport whose idle connections can be closed, also when
// wrappers of the configuration hide the transport that has them.
type connected struct {
	http.RoundTripper

	base *http.Transport
}

// CloseIdleConnections closes the connections that are not in use.
func (c connected) CloseIdleConnections() { c.base.CloseIdleConnections() }

// refuseRedirect is a safeguard: the transport turns redirects into errors already.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Dial makes a connection.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer makes connections to tenants.
func Dialer() Dial { return (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext }

// DialUntil dials connections that are closed when ctx ends.
func DialUntil(ctx context.Context, next Dial) Dial {
	return func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := next(dialing, network, address)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		return &ownedConn{Conn: conn, release: stop}, nil
	}
}

// ownedConn releases the callback of the owner's context when it is closed.
type ownedConn struct {
	net.Conn

	release func() bool
}

// Close closes the connection.
func (c *ownedConn) Close() error {
	c.release()
	return c.Conn.Close()
}

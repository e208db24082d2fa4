package provider

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

const (
	dialTimeout = 5 * time.Second
	keepAlive   = 30 * time.Second
	// headerTimeout is how long a tenant's apiserver may take to begin an answer.
	headerTimeout = 30 * time.Second
)

// newHTTPClient makes a client with a transport of its own: client-go would share one among tenants and keep it for ever. Its
// connections are made with the Dial of the configuration, and closed when ctx ends, streams that are still open included.
func newHTTPClient(ctx context.Context, config *rest.Config, wrap transport.WrapperFunc) (*http.Client, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the TLS settings of the kubeconfig: %w", err)
	}
	base := utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig:       tlsConfig,
		DialContext:           dialUntil(ctx, config.Dial),
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       90 * time.Second,
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, base)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of the kubeconfig: %w", err)
	}
	return &http.Client{Transport: requests.Patient(wrap(wrapped))}, nil
}

// dial makes a connection.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// dialer makes connections to tenants.
func dialer() dial { return (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext }

// dialUntil dials connections that are closed when ctx ends.
func dialUntil(ctx context.Context, next dial) dial {
	return func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := next(dialing, network, address)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		return &ownedConn{Conn: conn, release: stop}, nil
	}
}

// ownedConn takes back its claim on the owner's context when it is closed earlier.
type ownedConn struct {
	net.Conn
	release func() bool
}

// Close closes the connection.
func (c *ownedConn) Close() error {
	c.release()
	return c.Conn.Close()
}

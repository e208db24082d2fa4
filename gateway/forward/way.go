// Package forward forwards requests to the apiservers of tenants.
package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/tenanthttp"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	// headerTimeout leaves time for a control plane to wake.
	headerTimeout = 2 * time.Minute
	maxHeaders    = 1 << 20
	// streamBuffer and connBuffer bound what HTTP/2 holds of responses that a
	// slow client has not read yet: of one, and of all of a connection.
	streamBuffer = 256 << 10
	connBuffer   = 16 << 20
)

// Way leads to the apiserver of one tenant. It has connections of its own, and
// those that carry the gateway's certificate are not used for other requests.
type Way struct {
	server  *url.URL
	connect egress.Dial
	life    context.Context
	end     context.CancelFunc
	// plain forwards credentials of the caller, and stamped the users of client
	// certificates; nil if the tenant takes no users from the gateway.
	plain, stamped *transports
	// impersonates: users are impersonated, and not named in headers of a proxy.
	impersonates bool
}

// transports are one for HTTP/2, and one for HTTP/1.1, which upgrades need.
type transports struct {
	http2, http1 http.RoundTripper
	closeIdle    func()
}

// NewWay makes a way. It connects when it is first used. dialExternal connects to
// an external control plane.
func NewWay(access gatewayaccess.Access, dialExternal egress.Dial) (*Way, error) {
	server, err := url.Parse(access.Server)
	if err != nil || server.Scheme != "https" || server.Host == "" {
		return nil, errors.New("the URL of the apiserver does not begin with https://")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: access.ServerName}
	if len(access.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(access.CA) {
			return nil, errors.New("the CA of the apiserver has no certificate in PEM")
		}
	}
	w := newWay(server)
	w.plain = w.newTransports(config)
	if access.IsExternal() {
		w.connect = tenanthttp.DialUntil(w.life, dialExternal)
		return w, nil
	}
	certificate, err := tls.X509KeyPair(access.Certificate, access.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the gateway: %w", err)
	}
	config = config.Clone()
	config.Certificates = []tls.Certificate{certificate}
	w.stamped = w.newTransports(config)
	return w, nil
}

// NewConvertedWay makes the way of a tenant without an apiserver. Nothing is
// forwarded on it; the requests of the tenant last as long as it.
func NewConvertedWay() *Way { return newWay(nil) }

func newWay(server *url.URL) *Way {
	w := &Way{server: server}
	w.life, w.end = context.WithCancel(context.Background()) // until Close
	w.connect = tenanthttp.DialUntil(w.life, (&net.Dialer{}).DialContext)
	return w
}

// Close ends all requests and connections.
func (w *Way) Close() {
	w.end()
	for _, all := range []*transports{w.plain, w.stamped} {
		if all != nil {
			all.closeIdle()
		}
	}
}

// Bound returns a context that ends with the way, and what ends it.
func (w *Way) Bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(w.life, cancel)
	return ctx, func() { stop(); cancel() }
}

func (w *Way) newTransports(config *tls.Config) *transports {
	http2, http1 := w.newTransport(config, true), w.newTransport(config, false)
	return &transports{http2: http2, http1: http1, closeIdle: func() {
		http2.CloseIdleConnections()
		http1.CloseIdleConnections()
	}}
}

func (w *Way) newTransport(config *tls.Config, multiplexed bool) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(multiplexed)
	return &http.Transport{
		Protocols:              protocols,
		TLSClientConfig:        config.Clone(),
		DialContext:            w.dial,
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    sharedConns,
		MaxResponseHeaderBytes: maxHeaders,
		DisableCompression:     true, // the client decides
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connBuffer,
			SendPingTimeout: pingInterval, PingTimeout: pingTimeout,
		},
	}
}

const (
	// sharedConns is how many idle connections without HTTP/2 are kept.
	sharedConns = 8
	// A connection that does not answer within these times is closed.
	pingInterval, pingTimeout = 30 * time.Second, 15 * time.Second
)

// dial connects to the apiserver. The connections end with the way.
func (w *Way) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return w.connect(ctx, network, address)
}

package chain

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Limits of a connection: those of upstream's servers, except for headers.
const (
	idleTimeout       = 90 * time.Second
	readHeaderTimeout = 32 * time.Second
	// maxHeaderBytes is more than package inflight accepts, whose refusals have a reason.
	maxHeaderBytes = 160 << 10
	maxStreams     = 100
	streamBuffer   = 256 << 10
	// drainTimeout limits how long requests in flight delay a stop.
	drainTimeout = time.Second
)

// Serve serves the apiserver of a tenant at a listener until ctx ends, with the
// certificate and key, in PEM, that the function returns for each connection.
// Every connection of the listener belongs to this tenant.
func (c *Chain) Serve(ctx context.Context, t *Tenant, listener net.Listener, certificate func() (cert, key []byte)) error {
	server := &http.Server{
		Handler: c.Handler(t), TLSConfig: t.tlsConfig(certificate), MaxHeaderBytes: maxHeaderBytes,
		IdleTimeout: idleTimeout, ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog: log.New(io.Discard, "", 0), // a client causes each line
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReadFrameSize: streamBuffer,
			MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: streamBuffer * maxStreams,
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(tls.NewListener(listener, server.TLSConfig)) }() // until the server is closed
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		err = shutDown(ctx, server, served)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// shutDown waits for the requests in flight for a while.
func shutDown(ctx context.Context, server *http.Server, served <-chan error) error {
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(draining); err != nil {
		_ = server.Close() // ends watches
	}
	return <-served
}

func (t *Tenant) tlsConfig(certificate func() (cert, key []byte)) *tls.Config {
	return TLSConfig(certificate, t.spec.ClientCA, t.spec.FrontProxyCA, t.spec.GatewayCA)
}

// TLSConfig returns the TLS configuration of a server. It names the authorities
// by which clients choose a certificate. An authenticator verifies
// certificates, since clients may have others.
func TLSConfig(certificate func() (cert, key []byte), authorities ...[]byte) *tls.Config {
	pool := x509.NewCertPool()
	for _, authority := range authorities {
		pool.AppendCertsFromPEM(authority)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.RequestClientCert,
		ClientCAs:  pool,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.X509KeyPair(certificate())
			return &pair, err
		},
	}
}

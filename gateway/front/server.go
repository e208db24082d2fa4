package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/internal/clienthello"
	"github.com/virtualcluster/virtualcluster/internal/newcomers"
	"github.com/virtualcluster/virtualcluster/internal/pause"
)

const (
	helloTimeout  = 10 * time.Second
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	acceptRetry   = 50 * time.Millisecond
	// drainTimeout is how long requests in flight delay a stop.
	drainTimeout = 10 * time.Second
	maxHeaders   = 64 << 10
	// streams is how many requests a connection carries at a time, and
	// streamBuffer what is held of the body of each.
	streams      = 250
	streamBuffer = 256 << 10
	connBuffer   = 4 << 20
	// hellos is how many connections may not have named a server yet. The oldest
	// gives way to the next one.
	hellos = 1000
)

// Server accepts the connections of clients. It is a Runnable of a manager.
type Server struct {
	// Address is where it listens, unless there are Listeners already.
	Address   string
	Listeners []net.Listener
	// Certificate is the serving certificate, asked for at each handshake.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Handler     *Handler
	Log         logr.Logger
}

// NeedLeaderElection says that all replicas serve.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends. Requests in flight may then end by themselves
// for a while.
func (s *Server) Start(ctx context.Context) error {
	listeners, err := s.listen(ctx)
	if err != nil {
		return err
	}
	own := &accepted{address: listeners[0].Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{
		Handler: s.Handler, MaxHeaderBytes: maxHeaders, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ErrorLog:    log.New(io.Discard, "", 0), // a client causes each line
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context { return identity.WithConnection(ctx) },
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streams, MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connBuffer,
		},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: s.Certificate,
			ClientAuth: tls.RequestClientCert, // each tenant has a CA of its own
		},
	}
	var work sync.WaitGroup
	defer work.Wait()
	for _, listener := range listeners {
		s.Log.Info("Serves tenants", "address", listener.Addr().String())
		work.Go(func() { s.accept(ctx, listener, own, &work) })
	}
	work.Go(func() {
		<-ctx.Done()
		for _, listener := range listeners {
			_ = listener.Close()
		}
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if server.Shutdown(draining) != nil {
			_ = server.Close() // ends watches
		}
		s.Handler.Index.Close()
	})
	if err := server.Serve(tls.NewListener(own, server.TLSConfig)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve tenants: %w", err)
	}
	return nil
}

func (s *Server) listen(ctx context.Context) ([]net.Listener, error) {
	if len(s.Listeners) > 0 {
		return s.Listeners, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for clients: %w", err)
	}
	return []net.Listener{listener}, nil
}

// accept hands connections to the server, or passes them on.
func (s *Server) accept(ctx context.Context, listener net.Listener, own *accepted, work *sync.WaitGroup) {
	unnamed := newcomers.New(hellos)
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, most likely
			pause.For(ctx, acceptRetry)
			continue
		}
		named := unnamed.Add(conn)
		work.Go(func() { s.route(ctx, conn, own, named) })
	}
}

// route reads the server name of a connection. One that names the apiserver of
// a tenant is passed on to it as it is.
func (s *Server) route(ctx context.Context, conn net.Conn, own *accepted, named func()) {
	timed, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	name, replayed, err := clienthello.Peek(timed, conn)
	named()
	if err != nil {
		_ = conn.Close()
		return
	}
	if tenant := s.passTo(name); tenant != nil {
		s.Handler.pass(ctx, replayed, tenant)
		return
	}
	own.put(replayed)
}

// accepted is a listener of connections that have been accepted already.
type accepted struct {
	address net.Addr
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

// put adds a connection, or closes it if the listener is closed.
func (a *accepted) put(conn net.Conn) {
	select {
	case a.conns <- conn:
	case <-a.closed:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (a *accepted) Accept() (net.Conn, error) {
	select {
	case conn := <-a.conns:
		return conn, nil
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (a *accepted) Addr() net.Addr { return a.address }

// Close implements net.Listener.
func (a *accepted) Close() error {
	a.once.Do(func() { close(a.closed) })
	return nil
}

package vnagent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/vnagent/resourcemetrics"
)

const (
	// headerPatience is how long a client may take for a handshake and the
	// headers of a request.
	headerPatience = 10 * time.Second
	// maxHeaders bounds the headers of a request, of which the agent needs a
	// few hundred bytes.
	maxHeaders = 16 << 10
	// idlePatience is how long a connection is kept without a request.
	idlePatience = 2 * time.Minute
	stopPatience = 5 * time.Second
)

// Options are what a server is made of.
type Options struct {
	// Address is where it listens, unless there is a Listener already.
	Address  string
	Listener net.Listener
	// Certificate is its serving certificate, asked for at each handshake.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Super leads to the super cluster, with the agent's rights.
	Super *rest.Config
	// Cache holds the VirtualClusters and what vc-manager publishes of them,
	// and Indexer adds an index to it.
	Cache   client.Reader
	Indexer client.FieldIndexer
	// Live reads namespaces, pods and their metrics of the super cluster around
	// the cache.
	Live client.Reader
	// StreamsPerTenant is how many streams a tenant may have at a time.
	StreamsPerTenant int
	Metrics          *Metrics
	Logger           logr.Logger
}

// Server serves the kubelet API to tenants' apiservers. It is a Runnable of a
// manager, which starts it when the cache is filled.
type Server struct {
	options     Options
	handler     *handler
	connections *connections
}

// NewServer makes a server.
func NewServer(ctx context.Context, options Options) (*Server, error) {
	if err := indexAuthorities(ctx, options.Indexer); err != nil {
		return nil, fmt.Errorf("index the kubelet client CAs: %w", err)
	}
	way, err := newSuper(options.Super)
	if err != nil {
		return nil, err
	}
	known := tenants{cache: options.Cache}
	return &Server{options: options, connections: newConnections(known, connectionsPerStream*options.StreamsPerTenant), handler: &handler{
		tenants: known,
		pods:    pods{super: options.Live},
		limit:   newLimit(options.StreamsPerTenant),
		super:   way,
		usage:   resourcemetrics.Server{Super: options.Live},
		metrics: options.Metrics,
		log:     options.Logger,
	}}, nil
}

// Start serves until the context ends, and with it all streams.
func (s *Server) Start(ctx context.Context) error {
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           s.handler,
		TLSConfig:         s.tls(ctx),
		ReadHeaderTimeout: headerPatience,
		MaxHeaderBytes:    maxHeaders,
		IdleTimeout:       idlePatience,
		ConnState:         s.connections.follow(ctx),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          errorLog(s.options.Logger),
	}
	stopped := make(chan error, 1)
	go func() { // ends with ctx
		<-ctx.Done()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
		defer cancel()
		stopped <- server.Shutdown(stopping)
	}()
	s.options.Logger.Info("Serves the kubelet API", "address", listener.Addr().String())
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the kubelet API: %w", err)
	}
	return <-stopped
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	if s.options.Listener != nil {
		return s.options.Listener, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for tenants' apiservers: %w", err)
	}
	return listener, nil
}

// NeedLeaderElection says that all replicas serve.
func (s *Server) NeedLeaderElection() bool { return false }

// tls wants a certificate of every client, and leaves it to us whose it is:
// there is an authority for each tenant.
func (s *Server) tls(ctx context.Context) *tls.Config {
	return &tls.Config{
		MinVersion:       tls.VersionTLS12,
		GetCertificate:   s.options.Certificate,
		ClientAuth:       tls.RequireAnyClientCert,
		VerifyConnection: func(state tls.ConnectionState) error { return s.handler.verify(ctx, state) },
	}
}

package tenants

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/miekg/dns"
)

// Timeouts of TCP connections.
const readTimeout, idleTimeout = 3 * time.Second, 10 * time.Second

// tenantKey is the key of a query's *tenant in its context.
type tenantKey struct{}

// listener answers one tenant, at a port for UDP and TCP.
type listener struct {
	*tenant

	spec listenerSpec
	// core runs the plugins.
	core    *dnsserver.Server
	ctx     context.Context //nolint:containedctx // the library's handlers have none
	cancel  context.CancelFunc
	servers []*dns.Server
	running sync.WaitGroup
}

// listen opens the port of a tenant.
func listen(ctx context.Context, host string, spec listenerSpec, t *tenant, core *dnsserver.Server) (*listener, error) {
	address := net.JoinHostPort(host, strconv.FormatUint(uint64(spec.port), 10))
	var config net.ListenConfig
	socket, err := config.ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	connections, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen at %s: %w", address, err), socket.Close())
	}
	l := &listener{tenant: t, spec: spec, core: core}
	l.ctx, l.cancel = context.WithCancel(ctx)
	l.serve(&dns.Server{PacketConn: newPackets(l.ctx, socket.(*net.UDPConn), t.admission)})
	l.serve(&dns.Server{
		Listener:       &admittedListener{connections, t.admission},
		DecorateReader: func(r dns.Reader) dns.Reader { return &pacedReader{r, l} },
	})
	return l, nil
}

func (l *listener) serve(server *dns.Server) {
	server.Handler, server.ReadTimeout = l, readTimeout
	server.IdleTimeout = func() time.Duration { return idleTimeout }
	started := make(chan struct{})
	server.NotifyStartedFunc = func() { close(started) }
	l.servers = append(l.servers, server)
	l.running.Go(func() {
		if err := server.ActivateAndServe(); err != nil && l.ctx.Err() == nil {
			log.Errorf("Serve at port %d: %v", l.spec.port, err)
		}
	})
	<-started // a server that has not started cannot be stopped
}

// close closes the port, and waits for the queries in progress.
func (l *listener) close() {
	l.cancel()
	for _, server := range l.servers {
		if err := server.Shutdown(); err != nil {
			log.Warningf("Close port %d: %v", l.spec.port, err)
		}
	}
	l.running.Wait()
}

// ServeDNS answers a query of the tenant's own pods. Others get no answer.
func (l *listener) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	a, address := l.admission, addressOf(w.RemoteAddr())
	var holder Holder
	if c, ok := w.RemoteAddr().(*client); ok {
		w, holder = &clientWriter{w, c.UDPAddr}, c.holder
	} else {
		holder = a.holder(address)
	}
	if !a.await(l.ctx, address, holder) {
		return
	}
	if !acquire(a.concurrent) {
		a.metrics.drop(busy)
		return
	}
	defer func() { <-a.concurrent }()
	ctx := context.WithValue(l.ctx, dnsserver.Key{}, l.core)
	ctx = context.WithValue(ctx, dnsserver.LoopKey{}, 0)
	l.core.ServeDNS(context.WithValue(ctx, tenantKey{}, l.tenant), w, r)
}

// pacedReader reads queries of the tenant's connections at the tenant's rate.
type pacedReader struct {
	dns.Reader

	listener *listener
}

// ReadTCP reads the next query of a connection. An error of the context ends the
// server, which is being shut down.
func (p *pacedReader) ReadTCP(conn net.Conn, timeout time.Duration) ([]byte, error) {
	query, err := p.Reader.ReadTCP(conn, timeout)
	if err != nil {
		return query, err
	}
	return query, p.listener.admission.pace.Wait(p.listener.ctx)
}

// admittedListener accepts the connections that are not other tenants', up to
// the tenant's limit.
type admittedListener struct {
	net.Listener

	admission *admission
}

// Accept returns the next connection.
func (l *admittedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		switch {
		case l.admission.isForeign(l.admission.holder(addressOf(conn.RemoteAddr()))):
		case acquire(l.admission.connections):
			return &countedConn{Conn: conn, release: func() { <-l.admission.connections }}, nil
		default:
			l.admission.metrics.drop(busy)
		}
		_ = conn.Close() // it was not answered
	}
}

// countedConn gives up its place when it is closed.
type countedConn struct {
	net.Conn

	once    sync.Once
	release func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	defer c.once.Do(c.release)
	return c.Conn.Close()
}

package hosted

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/clienthello"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/newcomers"
)

const (
	// serverNameSuffix is the suffix of server names.
	serverNameSuffix = "." + names.ServerNameDomain
	helloTimeout     = 10 * time.Second
	// acceptRetry prevents a busy loop when Accept fails.
	acceptRetry = 50 * time.Millisecond
)

// router accepts connections at the host's port and passes each to the inlet of
// the control plane that its TLS server name identifies.
type router struct {
	listener net.Listener
	fallback string
	work     sync.WaitGroup

	// peers accepts connections that other hosts pass on, which are not passed on
	// again; nil if there are none. Elsewhere finds these hosts.
	peers     net.Listener
	elsewhere Elsewhere
	// passed are the connections that are passed on to these hosts.
	passed *passed
	// names finds control planes by names for clients; nil if they have none.
	names Names

	// hellos are the connections that have not named a control plane.
	hellos *newcomers.Set
	// sleepers have no route, and one when they have woken.
	sleepers *sleepers
	// activator serves connections to sleepers.
	activator *activator

	mu     sync.RWMutex
	routes map[string]*inlet
}

// Router is a port of several hosts, whose control planes have different names.
type Router struct {
	*router

	end context.CancelFunc
}

// RouterOptions configure a Router.
type RouterOptions struct {
	// IP and Port are the address for clients, and PeerPort is the port for
	// connections that other hosts pass on. Port 0 is a free one.
	IP             net.IP
	Port, PeerPort int
	// Keys are those of control planes that sleep.
	Keys Keyring
	// Elsewhere finds the hosts of other control planes. If nil, there are none,
	// and there is no PeerPort.
	Elsewhere Elsewhere
	// Names finds control planes by further names; nil if they have none.
	Names Names
}

// Names returns the control plane that clients reach by a server name in lower
// case, which is not one that the host itself gives to it. It reports false for a
// name of none.
type Names func(ctx context.Context, serverName string) (controlPlane string, found bool)

// Listen opens a port of several hosts, and serves it until Stop.
func Listen(ctx context.Context, opts RouterOptions) (*Router, error) {
	r, err := listenRouter(opts.IP, opts.Port, "", opts.Keys)
	if err != nil {
		return nil, err
	}
	r.names = opts.Names
	if opts.Elsewhere != nil {
		r.elsewhere = opts.Elsewhere
		if r.peers, err = listen(opts.IP, opts.PeerPort); err != nil {
			return nil, errors.Join(err, r.listener.Close())
		}
	}
	ctx, end := context.WithCancel(ctx)
	r.start(ctx)
	return &Router{router: r, end: end}, nil
}

// Port returns the number of the port for clients.
func (r *Router) Port() int { return portOf(r.listener) }

// PeerPort returns the number of the port for other hosts; 0 if there is none.
func (r *Router) PeerPort() int {
	if r.peers == nil {
		return 0
	}
	return portOf(r.peers)
}

func portOf(listener net.Listener) int {
	tcp, _ := listener.Addr().(*net.TCPAddr) // both are TCP listeners
	return tcp.Port
}

// Sleeping returns how many control planes of the hosts sleep.
func (r *Router) Sleeping() int { return r.sleepers.count() }

// Stop closes the port. The hosts have stopped before.
func (r *Router) Stop() {
	r.end()
	r.stop()
}

// listenRouter opens the port. The router serves after start. The keys of control
// planes that sleep are in the keyring.
func listenRouter(ip net.IP, port int, fallback string, keyring Keyring) (*router, error) {
	listener, err := listen(ip, port)
	if err != nil {
		return nil, err
	}
	r := &router{
		listener: listener, fallback: serverName(fallback), sleepers: newSleepers(), hellos: newcomers.New(hellosPerHost),
		routes: map[string]*inlet{}, passed: newPassed(),
	}
	r.activator = newActivator(r, identities{keyring}.of)
	return r, nil
}

func listen(ip net.IP, port int) (net.Listener, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: port})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d on %s is taken: choose another one, or stop what uses it", port, ip)
	}
	return listener, wrapf(err, "listen on port %d of %s", port, ip)
}

func serverName(name string) string { return name + serverNameSuffix }

// start serves until stop; ctx must end before that.
func (r *router) start(ctx context.Context) {
	r.work.Go(func() { r.accept(ctx, r.listener, r.elsewhere != nil) })
	if r.peers != nil {
		r.work.Go(func() { r.accept(ctx, r.peers, false) })
	}
	r.work.Go(r.activator.serve)
}

func (r *router) port() string {
	_, port, _ := net.SplitHostPort(r.listener.Addr().String()) // a TCP listener has a port
	return port
}

// accept accepts connections of a listener. If passOn is set, those to control
// planes of other hosts are passed on to them.
func (r *router) accept(ctx context.Context, listener net.Listener, passOn bool) {
	acceptFrom(ctx, listener, func(conn net.Conn) {
		r.work.Go(func() { r.route(ctx, conn, passOn) })
	})
}

// acceptFrom accepts connections until the listener is closed.
func acceptFrom(ctx context.Context, listener net.Listener, accepted func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			accepted(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of file descriptors, most likely
			pause(ctx.Done(), acceptRetry)
		}
	}
}

// deliver passes a connection to a control plane, which the port of the
// connection identifies, to the activator if it sleeps, or to the host that has
// taken it over.
func (r *router) deliver(ctx context.Context, serverName string, conn net.Conn) {
	if r.sleepers.sleeps(serverName) {
		r.work.Go(func() { r.activator.admit(ctx, serverName, conn, r.hellos.Add(conn)) })
		return
	}
	if in := r.find(serverName); in != nil {
		in.offer(conn)
		return
	}
	if r.elsewhere == nil {
		_ = conn.Close()
		return
	}
	r.work.Go(func() { r.passOn(ctx, serverName, conn, ofPods) })
}

func (r *router) route(ctx context.Context, conn net.Conn, passOn bool) {
	leave := r.hellos.Add(conn)
	name, conn, err := readServerName(ctx, conn)
	name = r.canonical(ctx, name)
	if err == nil && r.sleepers.sleeps(name) {
		r.activator.admit(ctx, name, conn, leave)
		return
	}
	leave()
	in := r.find(name)
	switch {
	case err == nil && in != nil:
		in.offer(conn)
	case err == nil && passOn && strings.HasSuffix(name, serverNameSuffix):
		r.passOn(ctx, name, conn, ofPeers)
	default:
		_ = conn.Close()
	}
}

// canonical returns the server name that the host gives to a control plane, by any
// of its names. A name of no control plane stays as it is.
func (r *router) canonical(ctx context.Context, name string) string {
	if r.names == nil || name == "" || strings.HasSuffix(name, serverNameSuffix) {
		return name
	}
	if controlPlane, found := r.names(ctx, name); found {
		return serverName(controlPlane)
	}
	return name
}

// readServerName returns the server name that a client sends within a while, in
// lower case: host names are compared without regard to case.
func readServerName(ctx context.Context, conn net.Conn) (string, net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	name, conn, err := clienthello.Peek(ctx, conn)
	return strings.ToLower(name), conn, err
}

// find returns nil for a control plane of this host that does not run: the
// certificate of the fallback would only mislead the client.
func (r *router) find(name string) *inlet {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if in, ok := r.routes[name]; ok || strings.HasSuffix(name, serverNameSuffix) {
		return in
	}
	return r.routes[r.fallback]
}

func (r *router) add(name string, in *inlet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.routes[serverName(name)] = in
}

// remove deletes the route unless another inlet has replaced it.
func (r *router) remove(name string, in *inlet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.routes[serverName(name)] == in {
		delete(r.routes, serverName(name))
	}
}

func (r *router) stop() {
	_ = r.listener.Close()
	if r.peers != nil {
		_ = r.peers.Close()
	}
	r.activator.stop()
	r.work.Wait()
}

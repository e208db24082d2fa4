package hosted

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// proofTimeout is how long a client has to send a request with credentials.
	proofTimeout = 10 * time.Second
	// unprovenHeaderBytes bounds the headers of a client without proof. The
	// largest that clients of Kubernetes send are tokens of a few KiB.
	unprovenHeaderBytes = 64 << 10
)

// activator serves connections to control planes that sleep. It terminates TLS
// with the certificate of the control plane, and wakes it for a request with
// credentials that the control plane has issued: only these count against the
// limits of wakes and of held requests. The handler of the control plane serves the
// request, and the connection is then closed: the next one is passed to the
// control plane unread.
type activator struct {
	// identify reads the keys of a control plane by its server name.
	identify func(ctx context.Context, serverName string) (*identity, error)
	sleepers *sleepers
	// find returns the inlet of a control plane that runs; nil if it does not.
	find func(serverName string) *inlet

	server *http.Server
	conns  *queue
}

func newActivator(r *router, identify func(ctx context.Context, serverName string) (*identity, error)) *activator {
	a := &activator{identify: identify, sleepers: r.sleepers, find: r.find, conns: newQueue(r.listener.Addr())}
	a.server = &http.Server{
		Handler: a, MaxHeaderBytes: unprovenHeaderBytes, ReadHeaderTimeout: proofTimeout, IdleTimeout: proofTimeout,
		ErrorLog: log.New(io.Discard, "", 0), // a client causes each line
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, waitingKey{}, waitingOf(conn))
		},
	}
	return a
}

// serve serves until stop.
func (a *activator) serve() { _ = a.server.Serve(a.conns) } // returns that it was closed

func (a *activator) stop() {
	_ = a.server.Close() // and all connections
}

// admit serves a connection to a control plane that sleeps. It calls leave when
// the client has proven who it is, or the connection is closed.
func (a *activator) admit(ctx context.Context, serverName string, conn net.Conn, leave func()) {
	keys, err := a.identify(ctx, serverName)
	if err != nil { // it has never run: no client has credentials
		leave()
		_ = conn.Close()
		return
	}
	late := time.AfterFunc(proofTimeout, func() { _ = conn.Close() })
	waiting := &waitingConn{Conn: conn, serverName: serverName, keys: keys, prove: sync.OnceFunc(func() {
		late.Stop()
		leave()
	})}
	if !a.conns.put(tls.Server(waiting, keys.config)) {
		_ = waiting.Close()
	}
}

// ServeHTTP implements http.Handler.
func (a *activator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	waiting, _ := r.Context().Value(waitingKey{}).(*waitingConn)
	if r.Header.Get("Upgrade") == "" { // whose response has the header
		w.Header().Set("Connection", "close")
	}
	if err := waiting.keys.authenticate(r); err != nil {
		reject(w, r, err)
		return
	}
	waiting.prove()
	in, handler := a.wake(r.Context(), waiting.serverName)
	if handler == nil {
		reject(w, r, apierrors.NewTooManyRequests("the control plane sleeps, and could not be woken: try again", retryAfter))
		return
	}
	conn := waiting.pass(in)
	handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, conn.LocalAddr())))
}

// wake wakes a control plane, and returns its inlet and its handler; nil if it
// does not run then.
func (a *activator) wake(ctx context.Context, serverName string) (*inlet, http.Handler) {
	if !a.sleepers.await(ctx, serverName) {
		return nil, nil
	}
	in := a.find(serverName)
	if in == nil {
		return nil, nil
	}
	return in, in.handler()
}

func reject(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{}, w, r)
}

type waitingKey struct{}

// waitingOf returns the connection below TLS.
func waitingOf(conn net.Conn) *waitingConn {
	encrypted, _ := conn.(*tls.Conn)
	waiting, _ := encrypted.NetConn().(*waitingConn)
	return waiting
}

// waitingConn is a connection to a control plane that sleeps.
type waitingConn struct {
	net.Conn
	serverName string
	keys       *identity
	// prove is called when the client has proven who it is.
	prove func()

	mu     sync.Mutex
	closed bool
	// passed is the connection as one of the inlet of the control plane, which
	// closes it at its end; nil while the control plane sleeps.
	passed *inletConn
}

// pass passes the connection to a control plane that runs, once for all
// requests.
func (c *waitingConn) pass(in *inlet) *inletConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passed == nil {
		c.passed = in.track(c.Conn)
	}
	if c.closed {
		_ = c.passed.Close()
	}
	return c.passed
}

// Close implements net.Conn.
func (c *waitingConn) Close() error {
	c.prove()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.passed != nil {
		return c.passed.Close()
	}
	return c.Conn.Close()
}

package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// connectProxy is an HTTP proxy that connects to one server for all hosts: the
// names of tenants are not resolved.
type connectProxy struct {
	server   string
	listener net.Listener
	work     sync.WaitGroup
	http     *http.Server
}

// newConnectProxy starts a proxy to the server of a URL.
func newConnectProxy(server string) (*connectProxy, error) {
	parsed, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	p := &connectProxy{server: parsed.Host}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	p.http = &http.Server{Handler: http.HandlerFunc(p.connect), ReadHeaderTimeout: time.Minute}
	p.work.Go(func() { _ = p.http.Serve(p.listener) }) // until stop
	return p, nil
}

func (p *connectProxy) url() string { return "http://" + p.listener.Addr().String() }

func (p *connectProxy) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	up, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", p.server)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	down, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = up.Close()
		return
	}
	if _, err := down.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_ = errors.Join(up.Close(), down.Close())
		return
	}
	p.work.Go(func() { forward(up, buffered) })
	p.work.Go(func() { forward(down, up) })
}

// forward copies until one side ends, and tells the other.
func forward(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
}

// stop does not wait for connections: their clients have ended.
func (p *connectProxy) stop() error { return p.http.Close() }

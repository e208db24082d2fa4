package local

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Proxy forwards connections to an apiserver. It forwards bytes, so TLS is end
// to end. It can be cut, which resets connections and refuses new ones, and
// slowed down.
type Proxy struct {
	target, address string
	work            sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while it is cut
	links    map[*link]struct{}
	delay    func() time.Duration // nil for none
}

// NewProxy starts a proxy in front of a server, given as a URL or as host and
// port.
func NewProxy(server string) (*Proxy, error) {
	target := server
	if parsed, err := url.Parse(server); err == nil && parsed.Host != "" {
		target = parsed.Host
	}
	p := &Proxy{target: target, links: map[*link]struct{}{}}
	listener, err := listenAnywhere(context.Background()) // it does not wait
	if err != nil {
		return nil, err
	}
	p.address = listener.Addr().String()
	p.serve(listener)
	return p, nil
}

// Config returns a client configuration that connects through the proxy and
// still verifies the server's name.
func (p *Proxy) Config(direct *rest.Config) *rest.Config {
	config := rest.CopyConfig(direct)
	config.Host = "https://" + p.address
	if config.ServerName == "" {
		config.ServerName = hostname(direct.Host)
	}
	return config
}

// Kubeconfig returns a kubeconfig that connects through the proxy.
func (p *Proxy) Kubeconfig(direct []byte) ([]byte, error) {
	config, err := clientcmd.Load(direct)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		if cluster.TLSServerName == "" {
			cluster.TLSServerName = hostname(cluster.Server)
		}
		cluster.Server = "https://" + p.address
	}
	return clientcmd.Write(*config)
}

// hostname returns the host of a URL.
func hostname(server string) string {
	parsed, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// Cut resets all connections and refuses new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for l := range p.links {
		l.reset()
	}
}

// Resume accepts connections again.
func (p *Proxy) Resume() error {
	p.mu.Lock()
	cut := p.listener == nil
	p.mu.Unlock()
	if !cut {
		return nil
	}
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("resume the proxy of %s: %w", p.target, err)
	}
	p.serve(listener)
	return nil
}

// Slow delays all traffic, in both directions, by a time between least and
// most.
func (p *Proxy) Slow(least, most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = nil
	if most > 0 {
		p.delay = func() time.Duration { return least + rand.N(most-least+1) }
	}
}

// Close cuts the proxy and waits until all its connections are closed.
func (p *Proxy) Close() {
	p.Cut()
	p.work.Wait()
}

// serve accepts connections until the proxy is cut.
func (p *Proxy) serve(listener net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = listener
	p.work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // cut
			}
			p.work.Go(func() { p.pass(listener, client) })
		}
	})
}

// pass forwards between a client and the server until one of them closes its
// connection.
func (p *Proxy) pass(listener net.Listener, client net.Conn) {
	defer client.Close() //nolint:errcheck // it holds no buffered data
	server, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // it holds no buffered data
	l := &link{client: client, server: server, ended: make(chan struct{})}
	if !p.add(listener, l) {
		l.reset()
		return
	}
	defer p.remove(l)
	p.work.Go(func() { l.copy(server, client, p.wait) })
	l.copy(client, server, p.wait)
}

// dialTimeout limits how long a live server may take to accept a connection.
const dialTimeout = 5 * time.Second

// add registers a link, unless the proxy was cut after the client connected.
func (p *Proxy) add(listener net.Listener, l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != listener {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// wait returns the delay of the next bytes.
func (p *Proxy) wait() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.delay == nil {
		return 0
	}
	return p.delay()
}

// link is the pair of a client's connection and its connection to the server.
type link struct {
	client, server net.Conn
	once           sync.Once
	ended          chan struct{}
}

// maxChunk limits the bytes that are delayed together.
const maxChunk = 256 << 10

// copy forwards bytes from one side to the other, and closes the link at the
// end of the stream.
func (l *link) copy(to io.Writer, from io.Reader, wait func() time.Duration) {
	defer l.end()
	buffer := make([]byte, maxChunk)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !l.pause(wait()) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pause waits, and reports whether the link is still open.
func (l *link) pause(d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ended:
		return false
	}
}

// reset closes the link with a reset, which the client sees as an error.
func (l *link) reset() {
	if tcp, ok := l.client.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	l.end()
}

// end closes both sides.
func (l *link) end() {
	l.once.Do(func() {
		close(l.ended)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

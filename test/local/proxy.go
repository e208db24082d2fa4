package local

import (
	"errors"
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

// Proxy stands between clients and an apiserver. It passes bytes on as they are, so TLS goes from end to end; it can be cut,
// so that connections are reset and refused, and it can be slow.
type Proxy struct {
	target, address string
	work            sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while it is cut
	links    map[*link]struct{}
	delay    func() time.Duration // nil for none
}

// NewProxy starts a proxy in front of a server, which is given as the URL or the host and port of its clients.
func NewProxy(server string) (*Proxy, error) {
	target := server
	if parsed, err := url.Parse(server); err == nil && parsed.Host != "" {
		target = parsed.Host
	}
	p := &Proxy{target: target, links: map[*link]struct{}{}}
	listener, err := listenAnywhere()
	if err != nil {
		return nil, err
	}
	p.address = listener.Addr().String()
	p.serve(listener)
	return p, nil
}

// The ports of proxies are not among those that systems give to outgoing connections: while a proxy is cut, its port is nobody's.
const firstPort, lastPort = 20000, 30000

// listenAnywhere listens on a port that is free.
func listenAnywhere() (net.Listener, error) {
	var errs []error
	for range 20 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort)))
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no port for a proxy: %w", errors.Join(errs...))
}

// Config is a client's configuration that leads through the proxy. The server is verified by the name that it has without.
func (p *Proxy) Config(direct *rest.Config) *rest.Config {
	config := rest.CopyConfig(direct)
	config.Host = "https://" + p.address
	if config.ServerName == "" {
		config.ServerName = hostname(direct.Host)
	}
	return config
}

// Kubeconfig is a kubeconfig that leads through the proxy.
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

// hostname is the name of the host in a URL.
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
		return fmt.Errorf("resuming the proxy of %s: %w", p.target, err)
	}
	p.serve(listener)
	return nil
}

// Slow has everything that is passed on, in either direction, wait between least and most.
func (p *Proxy) Slow(least, most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = nil
	if most > 0 {
		p.delay = func() time.Duration { return least + rand.N(most-least+1) }
	}
}

// Close cuts the proxy and waits until nothing of it is left.
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

// pass connects a client to the server until one of them ends.
func (p *Proxy) pass(listener net.Listener, client net.Conn) {
	defer client.Close() //nolint:errcheck // nothing is lost with it
	server, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // nothing is lost with it
	l := &link{client: client, server: server, ended: make(chan struct{})}
	if !p.add(listener, l) {
		l.reset()
		return
	}
	defer p.remove(l)
	p.work.Go(func() { l.copy(server, client, p.wait) })
	l.copy(client, server, p.wait)
}

// dialTimeout is how long a server that is there may take to accept a connection.
const dialTimeout = 5 * time.Second

// add takes a link in, unless the proxy was cut since the client connected.
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

// wait is how long the next bytes have to wait.
func (p *Proxy) wait() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.delay == nil {
		return 0
	}
	return p.delay()
}

// link is a client's connection with its other half.
type link struct {
	client, server net.Conn
	once           sync.Once
	ended          chan struct{}
}

// maxChunk is as much as waits together.
const maxChunk = 256 << 10

// copy passes bytes on from one side to the other, and ends the link when that ends.
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

// pause waits, and says whether the link still stands.
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

// reset ends the link in a way that the client takes for an error.
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

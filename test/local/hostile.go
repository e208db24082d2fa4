package local

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// hostileToken is the credential of the kubeconfig for a hostile apiserver. It
// is invalid everywhere else.
const hostileToken = "credential-of-the-platform"

// Hostile is an apiserver with forged responses. It terminates TLS with a
// certificate of its own CA; requests that match no rule are proxied to a real
// apiserver as that one's admin.
type Hostile struct {
	server *httptest.Server
	ca     []byte
	behind http.Handler

	mu    sync.Mutex
	rules []*rule
	seen  []*http.Request
}

// Match reports whether a rule applies to a request.
type Match func(*http.Request) bool

// Answer responds to a request. The handler behind proxies to the real
// apiserver.
type Answer func(w http.ResponseWriter, r *http.Request, behind http.Handler)

// rule pairs requests with their response.
type rule struct {
	match  Match
	answer Answer
}

// NewHostile starts a hostile apiserver in front of a real one. The
// configuration must be an admin's. Its certificate is also for the server names,
// which can be those of others.
func NewHostile(behind *rest.Config, serverNames ...string) (*Hostile, error) {
	target, err := url.Parse(behind.Host)
	if err != nil {
		return nil, fmt.Errorf("read the URL of the apiserver: %w", err)
	}
	transport, err := rest.TransportFor(behind)
	if err != nil {
		return nil, fmt.Errorf("set up a transport to the apiserver: %w", err)
	}
	ca, certificate, err := selfSigned(serverNames)
	if err != nil {
		return nil, err
	}
	h := &Hostile{ca: ca, behind: &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Header.Del("Authorization")
		},
		// Ignores errors: a client that disconnects cancels its watches.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {},
	}}
	h.server = httptest.NewUnstartedServer(h)
	h.server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that the syncer closes
	h.server.EnableHTTP2 = true
	h.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	h.server.StartTLS()
	return h, nil
}

// selfSigned makes the certificate of a server on loopback that says it has names,
// and the CA that has signed it, in PEM.
func selfSigned(serverNames []string) (ca []byte, _ tls.Certificate, _ error) {
	authority, err := pki.NewAuthority("hostile", time.Hour, time.Now())
	if err != nil {
		return nil, tls.Certificate{}, fmt.Errorf("make a CA: %w", err)
	}
	pair, err := authority.Server("hostile", serverNames, []net.IP{net.IPv4(127, 0, 0, 1)}, time.Hour, time.Now())
	if err != nil {
		return nil, tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	return authority.CertPEM, certificate, err
}

// URL returns the address of the apiserver.
func (h *Hostile) URL() string { return h.server.URL }

// CA returns the authority of its certificate, in PEM.
func (h *Hostile) CA() []byte { return h.ca }

// Kubeconfig returns a kubeconfig for the apiserver. It trusts further
// authorities in addition to the apiserver's own.
func (h *Hostile) Kubeconfig(authorities ...[]byte) ([]byte, error) {
	const name = "hostile"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: h.URL(), CertificateAuthorityData: slices.Concat(append(authorities, h.CA())...),
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: hostileToken}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}

// On adds a rule, which takes precedence over earlier ones, and cancels open
// requests, so that watches are established again. It returns a function that
// removes the rule.
func (h *Hostile) On(match Match, answer Answer) (undo func()) {
	added := &rule{match, answer}
	h.mu.Lock()
	h.rules = append(h.rules, added)
	h.mu.Unlock()
	h.server.CloseClientConnections()
	return func() {
		h.mu.Lock()
		h.rules = slices.DeleteFunc(h.rules, func(r *rule) bool { return r == added })
		h.mu.Unlock()
		h.server.CloseClientConnections()
	}
}

// Seen returns the number of requests so far that match.
func (h *Hostile) Seen(match Match) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := 0
	for _, r := range h.seen {
		if match(r) {
			count++
		}
	}
	return count
}

// Close cancels all requests and stops the server.
func (h *Hostile) Close() {
	h.server.CloseClientConnections()
	h.server.Close()
}

// ServeHTTP responds according to the last rule that matches.
func (h *Hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if answer := h.answer(r); answer != nil {
		answer(w, r, h.behind)
		return
	}
	h.behind.ServeHTTP(w, r)
}

// answer returns the response to a request; nil to proxy it to the real
// apiserver.
func (h *Hostile) answer(r *http.Request) Answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, r.Clone(context.Background()))
	for _, rule := range slices.Backward(h.rules) {
		if rule.match(r) {
			return rule.answer
		}
	}
	return nil
}

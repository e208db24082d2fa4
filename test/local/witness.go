package local

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

const loopback = "127.0.0.1"

// Witness is a proxy to an apiserver that records requests. Unlike a Proxy it
// terminates TLS: it has the clients' credentials, and clients need none.
type Witness struct {
	server *http.Server
	// config connects to the witness.
	config *rest.Config

	mu     sync.Mutex
	writes []Write
}

// Write is a request other than a read.
type Write struct {
	At           time.Time
	Method, Path string
	// Agent is the client's user agent.
	Agent string
}

// NewWitness starts a witness in front of an apiserver.
func NewWitness(direct *rest.Config) (*Witness, error) {
	target, err := url.Parse(direct.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(direct)
	if err != nil {
		return nil, err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(loopback, nil, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, err
	}
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization")
		},
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	w := &Witness{config: &rest.Config{
		Host: "https://" + listener.Addr().String(), TLSClientConfig: rest.TLSClientConfig{CAData: certificate},
		BearerToken: "none", // a kubeconfig must have credentials
	}}
	w.server = &http.Server{
		Protocols: new(http.Protocols),
		Handler: http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
			w.note(r)
			pass.ServeHTTP(answer, r)
		}),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		ErrorLog:  pass.ErrorLog,
	}
	w.server.Protocols.SetHTTP1(true) // HTTP/2 is much slower under the race detector
	go func() { _ = w.server.ServeTLS(listener, "", "") }()
	return w, nil
}

func (w *Witness) note(r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, Write{time.Now(), r.Method, r.URL.Path, r.UserAgent()})
}

// WriteKubeconfig writes a kubeconfig that connects to the witness.
func (w *Witness) WriteKubeconfig(file string) error { return WriteKubeconfig(file, w.config) }

// Since returns the writes after a time.
func (w *Witness) Since(t time.Time) []Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	var later []Write
	for _, write := range w.writes {
		if write.At.After(t) {
			later = append(later, write)
		}
	}
	return later
}

// Close stops the witness and closes all connections.
func (w *Witness) Close() error { return w.server.Close() }

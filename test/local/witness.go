package local

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Witness stands between one client and an apiserver, and notes what the client asks for. Unlike a Proxy it reads the requests: it has
// the client's credentials, and the client needs none.
type Witness struct {
	server  *http.Server
	address string

	mu     sync.Mutex
	writes []Write
}

// Write is a request that changes something.
type Write struct {
	At           time.Time
	Method, Path string
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	w := &Witness{address: listener.Addr().String()}
	w.server = &http.Server{Handler: http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		w.note(r)
		pass.ServeHTTP(answer, r)
	})}
	go func() { _ = w.server.Serve(listener) }()
	return w, nil
}

func (w *Witness) note(r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, Write{time.Now(), r.Method, r.URL.Path})
}

// WriteKubeconfig writes a kubeconfig that leads to the witness.
func (w *Witness) WriteKubeconfig(file string) error {
	return writeKubeconfig(file, &rest.Config{Host: "http://" + w.address})
}

// Since are the writes that came after a time.
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

// Close ends the witness and all connections.
func (w *Witness) Close() error { return w.server.Close() }

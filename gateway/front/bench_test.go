package front

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/gateway/forward"
	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// world is a gateway in front of a server that stands for the apiserver of one
// tenant: it answers at once, so that the differences are the gateway's.
type world struct {
	server, gateway string // addresses
	roots           *x509.CertPool
	user            tls.Certificate
	index           *tenants.Index
	handler         *Handler
	// stop has the gateway drain, and stopped says that it has ended.
	stop    context.CancelFunc
	stopped <-chan struct{}
}

func newWorld(b testing.TB, serve http.HandlerFunc, change ...func(*Handler)) world {
	b.Helper()
	authority := must(pki.NewAuthority("kubernetes", time.Hour, time.Now()))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CertPEM)
	pair := func(made pki.KeyPair, err error) (pki.KeyPair, tls.Certificate) {
		if err != nil {
			b.Fatal(err)
		}
		return made, must(tls.X509KeyPair(made.CertPEM, made.KeyPEM))
	}
	_, serving := pair(authority.Server("server", nil, []net.IP{net.IPv4(127, 0, 0, 1)}, time.Hour, time.Now()))
	own, _ := pair(authority.Client(gatewayaccess.User, nil, time.Hour, time.Now()))
	_, user := pair(authority.Client("jane", []string{"developers"}, time.Hour, time.Now()))

	server := httptest.NewUnstartedServer(serve)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientAuth: tls.RequestClientCert}
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	b.Cleanup(server.Close)

	index := tenants.NewIndex(types.NamespacedName{Name: "red"})
	red := must(tenants.New("red", gatewayaccess.Access{
		Server: server.URL, CA: authority.CertPEM, ClientCA: authority.CertPEM, Certificate: own.CertPEM, Key: own.KeyPEM,
	}, nil, false))
	index.Set(types.NamespacedName{Name: "red"}, red)
	listener := must((&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0"))
	front := &Server{
		Listeners: []net.Listener{listener}, Log: logr.Discard(),
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil },
		Handler: &Handler{
			Index: index, Limits: Limits{Requests: 10000, Streams: 10000, Body: 8 << 20},
			Metrics: must(NewMetrics(prometheus.NewRegistry())), Forwarder: forward.NewForwarder(),
			Reviewer: identity.NewReviewer(superCluster{}),
		},
	}
	for _, each := range change {
		each(front.Handler)
	}
	ctx, cancel := context.WithCancel(b.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = front.Start(ctx) // the requests tell
	}()
	b.Cleanup(func() {
		cancel()
		<-stopped
	})
	return world{server.Listener.Addr().String(), listener.Addr().String(), roots, user, index, front.Handler, cancel, stopped}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// way is one to the server: the address, and whether the client has a
// certificate or a token.
type way struct {
	name, address string
	certificate   bool
}

func (w world) ways() []way {
	return []way{
		{"direct", w.server, true}, {"certificate", w.gateway, true}, {"token", w.gateway, false},
	}
}

func (w world) client(b testing.TB, of way) *http.Client {
	b.Helper()
	config := &tls.Config{RootCAs: w.roots}
	if of.certificate {
		config.Certificates = []tls.Certificate{w.user}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (of way) request(ctx context.Context, path string) *http.Request {
	r := must(http.NewRequestWithContext(ctx, http.MethodGet, "https://"+of.address+path, nil))
	if !of.certificate {
		r.Header.Set("Authorization", "Bearer token")
	}
	return r
}

func get(c *http.Client, r *http.Request) error {
	response, err := c.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	return err
}

const path = "/api/v1/namespaces/default/pods/web"

func answer(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, strings.Repeat("x", 4<<10))
}

// BenchmarkGet is one request after the other.
func BenchmarkGet(b *testing.B) {
	w := newWorld(b, answer)
	for _, of := range w.ways() {
		b.Run(of.name, func(b *testing.B) {
			c, took := w.client(b, of), make([]time.Duration, 0, 1<<16)
			for b.Loop() {
				began := time.Now()
				if err := get(c, of.request(b.Context(), path)); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			for name, part := range map[string]int{"p50-µs": 50, "p99-µs": 99} {
				b.ReportMetric(float64(took[(len(took)-1)*part/100].Nanoseconds())/1e3, name)
			}
		})
	}
}

// BenchmarkThroughput is as many requests as there are processors.
func BenchmarkThroughput(b *testing.B) {
	w := newWorld(b, answer)
	for _, of := range w.ways() {
		b.Run(of.name, func(b *testing.B) {
			c := w.client(b, of)
			b.SetParallelism(8)
			b.RunParallel(func(each *testing.PB) {
				for each.Next() {
					if err := get(c, of.request(b.Context(), path)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// BenchmarkWatch is the memory of an open watch. Client and server are in the
// same process: that of the gateway is the difference from direct.
func BenchmarkWatch(b *testing.B) {
	const watches = 1000
	w := newWorld(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "{}\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	for _, of := range w.ways() {
		b.Run(of.name, func(b *testing.B) {
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context())
				c, before := w.client(b, of), inUse()
				for range watches {
					response := must(c.Do(of.request(ctx, "/api/v1/pods?watch=1")))
					must(io.ReadFull(response.Body, make([]byte, 3)))
				}
				b.ReportMetric(float64(inUse()-before)/watches/1024, "KiB/watch")
				cancel()
			}
		})
	}
}

// BenchmarkTenants is the memory of 1,000 tenants, and the time to add one.
func BenchmarkTenants(b *testing.B) {
	const many = 1000
	authority := must(pki.NewAuthority("kubernetes", time.Hour, time.Now()))
	own := must(authority.Client(gatewayaccess.User, nil, time.Hour, time.Now()))
	access := gatewayaccess.Access{
		Server: "https://10.0.0.1", CA: authority.CertPEM, ClientCA: authority.CertPEM, Certificate: own.CertPEM, Key: own.KeyPEM,
	}
	for b.Loop() {
		before, index := inUse(), tenants.NewIndex(types.NamespacedName{})
		for i := range many {
			name := fmt.Sprintf("tenant-%d", i)
			index.Set(types.NamespacedName{Name: name}, must(tenants.New(name, access, nil, false)))
		}
		b.ReportMetric(float64(inUse()-before)/many/1024, "KiB/tenant")
		began := time.Now()
		index.Set(types.NamespacedName{Name: "last"}, must(tenants.New("last", access, nil, false)))
		b.ReportMetric(float64(time.Since(began).Microseconds()), "µs/add")
		index.Close()
	}
}

// inUse is the memory in use after a collection, stacks included.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

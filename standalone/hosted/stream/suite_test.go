package stream_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/feedtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/stream"
)

const (
	soon      = 20 * time.Second
	elsewhere = http.StatusTeapot // of the handler behind the endpoint
)

// host is an etcd with the endpoints of its tenants.
type host struct {
	*feedtest.Store

	t testing.TB

	mu     sync.Mutex
	failed []error
}

func startHost(t testing.TB) *host {
	t.Helper()
	return &host{Store: feedtest.Start(t), t: t}
}

func (h *host) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = append(h.failed, err)
}

func (h *host) failures() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failed
}

// serve serves the endpoint of a tenant to the platform, or to another client.
func (h *host) serve(tenant string, toPlatform bool) *httptest.Server {
	h.t.Helper()
	endpoint := stream.Endpoint{
		Feed: h.Feed, Tenant: tenant, Failed: h.fail,
		IsPlatform: func(*tls.ConnectionState) bool { return toPlatform },
	}
	server := httptest.NewUnstartedServer(endpoint.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(elsewhere)
	})))
	server.EnableHTTP2 = true
	server.StartTLS()
	h.t.Cleanup(server.Close)
	h.t.Cleanup(server.CloseClientConnections)
	return server
}

// get sends a request to the endpoint.
func get(t testing.TB, server *httptest.Server, method, query string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, server.URL+watchstream.Path+"?"+query, http.NoBody)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	response, err := server.Client().Do(request)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// frames are those of a stream, one line each.
type frames chan string

// watch reads a stream of a tenant.
func (h *host) watch(tenant string, kinds ...watchstream.Kind) frames {
	h.t.Helper()
	response := get(h.t, h.serve(tenant, true), http.MethodGet, watchstream.Query(kinds).Encode())
	NewWithT(h.t).Expect(response.StatusCode).To(Equal(http.StatusOK))
	received := make(frames, 10_000)
	go func() { // until the test closes the response
		defer close(received)
		reader := watchstream.NewReader(response.Body)
		for {
			frame, err := reader.Next()
			if err != nil {
				return
			}
			received <- describe(frame, kinds[frame.Kind])
		}
	}()
	return received
}

// describe returns a frame as text: a sign, the resource, the name, and what
// the labels of the object say.
func describe(frame watchstream.Frame, kind watchstream.Kind) string {
	text := map[watchstream.Op]string{
		watchstream.Begin: "begin ", watchstream.Put: "+", watchstream.Same: "=", watchstream.Listed: "listed ", watchstream.Gone: "-",
	}[frame.Op] + kind.Resource.Resource
	if frame.Name != "" {
		text += " " + frame.Name
	}
	if len(frame.Object) == 0 {
		return text
	}
	// Every kind has its metadata in the field in which this kind has them.
	object := &metav1.PartialObjectMetadata{}
	if err := object.Unmarshal(frame.Object); err != nil {
		return text + " " + err.Error()
	}
	var values []string
	for _, key := range []string{"value", "show"} {
		if value := object.Labels[key]; value != "" {
			values = append(values, value)
		}
	}
	return strings.TrimSpace(text + " " + strings.Join(values, " "))
}

// expect expects these frames next.
func (f frames) expect(t testing.TB, want ...string) {
	t.Helper()
	for _, each := range want {
		select {
		case got := <-f:
			if got != each {
				t.Fatalf("got %q, want %q", got, each)
			}
		case <-time.After(soon):
			t.Fatalf("got nothing, want %q", each)
		}
	}
}

func pods() watchstream.Kind {
	return watchstream.Kind{Resource: corev1.SchemeGroupVersion.WithResource("pods")}
}

func configMaps() watchstream.Kind {
	return watchstream.Kind{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Metadata: true}
}

// pod returns a pod with a value in a label.
func pod(name, value string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID(name), Labels: map[string]string{"value": value},
	}}
}

// recordHeader is the size of the header of a record of TLS, whose last two
// bytes are the length of the record.
const recordHeader = 5

// records measures the records of TLS of a connection.
type records struct {
	header  []byte
	left    int
	largest atomic.Int64
}

func (r *records) read(data []byte) {
	for len(data) > 0 {
		if r.left > 0 {
			n := min(r.left, len(data))
			r.left, data = r.left-n, data[n:]
			continue
		}
		r.header, data = append(r.header, data[0]), data[1:]
		if len(r.header) == recordHeader {
			r.left = int(binary.BigEndian.Uint16(r.header[recordHeader-2:]))
			r.header = nil
			r.largest.Store(max(r.largest.Load(), int64(r.left)))
		}
	}
}

// recordsConn is a connection whose incoming records are measured.
type recordsConn struct {
	net.Conn

	records *records
}

func (c recordsConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.records.read(p[:n])
	return n, err
}

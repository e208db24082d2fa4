package inflight

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestALargeResponseArrives as the handler writes it, with flushes, by HTTP/1.1
// and HTTP/2.
func TestALargeResponseArrives(t *testing.T) {
	tenant := newHost(math.MaxInt64).Add("a", Config{Stored: func() Stored { return Stored{Bytes: 1 << 30} }})
	const parts, part = 1000, 4096
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(filterOf(always(tenant)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for range parts {
					if n, err := w.Write([]byte(strings.Repeat("x", part))); n != part || err != nil {
						t.Errorf("wrote %d bytes: %v", n, err)
						return
					}
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
			})))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/pods", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			if data, err := io.ReadAll(answer.Body); len(data) != parts*part || err != nil {
				t.Errorf("read %d bytes: %v", len(data), err)
			}
		})
	}
}

package tenanthttp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestConnectionsEndWithTheTenant: also those with a stream that is open.
func TestConnectionsEndWithTheTenant(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the client's connection is gone
		close(ended)
	}))
	defer server.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client, err := NewClient(ctx, &rest.Config{Host: server.URL}, Options{Limits: DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	cancel()
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("the stream continues")
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the server still has the connection")
	}
}

func TestBadTLSSettingsAreToldOf(t *testing.T) {
	bad := &rest.Config{Host: "https://x", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("no certificate")}}
	if _, err := NewClient(t.Context(), bad, Options{}); err == nil {
		t.Error("no error")
	}
}

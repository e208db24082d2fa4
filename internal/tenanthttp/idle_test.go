package tenanthttp

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// TestIdleConnectionsClose: the syncer closes the connection by which it
// discovered a tenant, because of its buffers. It also wraps the transport.
func TestIdleConnectionsClose(t *testing.T) {
	closed := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(answers(http.StatusOK, jsonType, object(100)))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return struct{ http.RoundTripper }{next} })
	client, err := NewClient(t.Context(), config, Options{Limits: DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	if err := get(t, client, server.URL+"/api/v1/pods/a"); err != nil {
		t.Fatal(err)
	}
	utilnet.CloseIdleConnectionsFor(client.Transport)
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("the connection is still open")
	}
}

package front

import (
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/gateway/tenants"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// TestDrain: a request in flight is served to its end when the gateway stops, and
// the gateway takes no new ones.
func TestDrain(t *testing.T) {
	began, ends := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			close(began)
			<-ends
		}
		answer(w, r)
	})
	way := w.ways()[1]
	served := make(chan error, 1)
	go func() { served <- get(w.client(t, way), way.request(t.Context(), path)) }()
	<-began
	w.stop()
	for get(w.client(t, way), way.request(t.Context(), "/version")) == nil {
		t.Log("it still accepts connections")
	}
	close(ends)
	if err := <-served; err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	<-w.stopped
}

// TestAccessLog: each request has a line, with its tenant and its user, and
// without credentials and parameters.
func TestAccessLog(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	w := newWorld(t, answer, func(h *Handler) {
		h.Log = funcr.New(func(_, line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}, funcr.Options{})
	})
	for _, way := range w.ways()[1:] {
		r := way.request(t.Context(), path+"?token=parameter")
		if !way.certificate {
			r.Header.Set("Authorization", "Bearer credential")
		}
		if err := get(w.client(t, way), r); err != nil {
			t.Fatal(err)
		}
	}
	w.stop()
	<-w.stopped
	all := strings.Join(lines, "\n")
	if len(lines) != 2 || strings.Count(all, `"tenant"="red"`) != 2 || !strings.Contains(lines[0], `"user"="jane"`) {
		t.Errorf("the lines are\n%s", all)
	}
	if strings.Contains(all, "parameter") || strings.Contains(all, "credential") {
		t.Errorf("a line tells too much:\n%s", all)
	}
}

// TestPassTo: connections are passed on by the names of control planes, except by
// those that are the gateway's own.
func TestPassTo(t *testing.T) {
	const domain = "gw.example.com"
	authority := must(pki.NewAuthority("kubernetes", time.Hour, time.Now()))
	client := must(authority.Client(gatewayaccess.User, nil, time.Hour, time.Now()))
	serving := must(authority.Server("gateway", []string{"gateway.example.org", "*.direct." + domain}, nil, time.Hour, time.Now()))
	certificate := must(tls.X509KeyPair(serving.CertPEM, serving.KeyPEM))
	index := tenants.NewIndex(types.NamespacedName{})
	t.Cleanup(index.Close)
	for key, serverName := range map[string]string{
		"red": "red.vc.internal", "blue": "gateway.example.org", "green": "green." + domain, "far": "far.example.net",
	} {
		access := gatewayaccess.Access{Server: "https://10.0.0.1", ServerName: serverName, Certificate: client.CertPEM, Key: client.KeyPEM}
		if key == "far" {
			access.Certificate, access.Key = nil, nil
		}
		index.Set(types.NamespacedName{Name: key}, must(tenants.New(key, access, nil, false)))
	}
	s := &Server{
		Handler: &Handler{Index: index, Domain: domain}, Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
	}
	for serverName, want := range map[string]string{
		"red.vc.internal": "red", "RED.vc.internal": "red", "gateway.example.org": "", "Gateway.Example.org": "", "green." + domain: "",
		domain: "", "": "", "unknown": "", "far.example.net": "", "red.direct." + domain: "red", "blue.direct." + domain: "blue",
		"far.direct." + domain: "", "unknown.direct." + domain: "",
	} {
		got := ""
		if to := s.passTo(serverName); to != nil {
			got = to.Key
		}
		if got != want {
			t.Errorf("%q is passed to %q, want %q", serverName, got, want)
		}
	}
	s.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("not there yet") }
	if s.passTo("red.vc.internal") == nil {
		t.Error("without a certificate, connections are not passed on")
	}
}

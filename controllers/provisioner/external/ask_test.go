package external

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// apiserver answers over TLS; the config leads to it with a token.
func apiserver(t *testing.T, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, BearerToken: "good", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func answers(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

func TestAsk(t *testing.T) {
	cases := map[string]struct {
		handler         http.HandlerFunc
		change          func(*rest.Config)
		version, reason string
		message         string
	}{
		"Version": {handler: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/version" || r.Header.Get("Authorization") != "Bearer good" {
				w.WriteHeader(http.StatusTeapot)
			}
			_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`))
		}, version: "v1.36.3"},
		"UnderAPath": {handler: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/tenants/red/version" {
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`))
		}, change: func(c *rest.Config) { c.Host += "/tenants/red/" }, version: "v1.36.3"},
		"Unauthorized":  {handler: answers(401, "no"), reason: tenancyv1alpha1.ReasonUnauthorized, message: "refuses the credentials"},
		"Forbidden":     {handler: answers(403, "no"), reason: tenancyv1alpha1.ReasonUnauthorized, message: "(Forbidden)"},
		"Broken":        {handler: answers(500, "secret"), reason: tenancyv1alpha1.ReasonUnreachable, message: "status 500"},
		"NotKubernetes": {handler: answers(200, "<html>"), reason: tenancyv1alpha1.ReasonUnreachable, message: "not that of a Kubernetes apiserver"},
		"EmptyVersion":  {handler: answers(200, "{}"), reason: tenancyv1alpha1.ReasonUnreachable, message: "not that of"},
		"LongVersion": {
			handler: answers(200, `{"gitVersion":"v`+strings.Repeat("1", 64)+`"}`),
			reason:  tenancyv1alpha1.ReasonUnreachable, message: "not that of",
		},
		"Redirect": {handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		}, reason: tenancyv1alpha1.ReasonUnreachable, message: "status 302"},
		"OtherCA": {
			handler: answers(200, `{"gitVersion":"v1.36.3"}`),
			change: func(c *rest.Config) {
				ca, err := pki.NewAuthority("other", time.Hour, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				c.CAData = ca.CertPEM
			},
			reason: tenancyv1alpha1.ReasonKubeconfigInvalid, message: "does not hold",
		},
		"OtherName": {
			handler: answers(200, `{"gitVersion":"v1.36.3"}`),
			change:  func(c *rest.Config) { c.ServerName = "red.tenants" },
			reason:  tenancyv1alpha1.ReasonKubeconfigInvalid, message: "does not hold",
		},
		"NobodyListens": {
			handler: answers(200, ""),
			change:  func(c *rest.Config) { c.Host = "https://" + freeAddress(t) },
			reason:  tenancyv1alpha1.ReasonUnreachable, message: "connection refused",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := apiserver(t, tc.handler)
			if tc.change != nil {
				tc.change(config)
			}
			got := ask(context.Background(), question{config: config})
			if got.version != tc.version {
				t.Errorf("version %q, want %q", got.version, tc.version)
			}
			reason, message := "", ""
			if got.failure != nil {
				reason, message = got.failure.Reason, got.failure.Message
			}
			if reason != tc.reason || !strings.Contains(message, tc.message) || strings.Contains(message, "secret") {
				t.Errorf("got %s %q, want %s %q", reason, message, tc.reason, tc.message)
			}
		})
	}
}

// TestConnectionsAreNotKept: an idle connection a tenant would be held for nothing.
func TestConnectionsAreNotKept(t *testing.T) {
	var peers []string
	config := apiserver(t, func(w http.ResponseWriter, r *http.Request) {
		peers = append(peers, r.RemoteAddr)
		_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`))
	})
	for range 2 {
		ask(context.Background(), question{config: config})
	}
	if len(peers) != 2 || peers[0] == peers[1] {
		t.Errorf("connections from %q", peers)
	}
}

// freeAddress is one on which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// TestExplain holds what a local server cannot show, and that no message
// contains local ports or times.
func TestExplain(t *testing.T) {
	dial := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://red/version", Err: &net.OpError{
			Op: "read", Net: "tcp", Err: err,
			Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 50123},
			Addr:   &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 443},
		}}
	}
	expired := x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2026-01-01 is after 2025-01-01"}
	cases := map[string]struct {
		err             error
		reason, message string
	}{
		"Reset":    {dial(os.NewSyscallError("read", syscall.ECONNRESET)), tenancyv1alpha1.ReasonUnreachable, "connection reset"},
		"Deadline": {&url.Error{Err: context.DeadlineExceeded}, tenancyv1alpha1.ReasonUnreachable, "does not answer within 5s"},
		"DNS": {
			&url.Error{Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "red", Server: "10.0.0.9:53"}}},
			tenancyv1alpha1.ReasonUnreachable, "cannot be resolved",
		},
		"Expired": {
			&url.Error{Err: &tls.CertificateVerificationError{Err: expired}},
			tenancyv1alpha1.ReasonKubeconfigInvalid, "has expired",
		},
		"Alert":   {&url.Error{Err: tls.AlertError(42)}, tenancyv1alpha1.ReasonUnauthorized, "client certificate"},
		"Unknown": {errors.New("something with 50123"), tenancyv1alpha1.ReasonUnreachable, "cannot read the version"},
		"Wrapped": {fmt.Errorf("x: %w", &statusError{503}), tenancyv1alpha1.ReasonUnreachable, "status 503"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := explain("https://red", tc.err)
			if got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %s %q", got.Reason, got.Message)
			}
			for _, leak := range []string{"50123", "10.0.0.9", "2026-01-01"} {
				if strings.Contains(got.Message, leak) {
					t.Errorf("message %q changes with every try", got.Message)
				}
			}
		})
	}
}

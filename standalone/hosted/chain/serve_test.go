package chain_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// TestServe: each tenant has a listener and a certificate of its own, and a
// stop ends its connections only.
func TestServe(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := map[string]chan error{}
	clients := map[string]*http.Client{}
	for _, name := range []string{"red", "blue"} {
		tenant, _ := add(t, c, name)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		authority, err := pki.NewAuthority(name, time.Hour, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		pair, err := authority.Server(name, []string{name}, nil, time.Hour, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
		serving := t.Context()
		if name == "red" {
			serving = ctx
		}
		done := make(chan error, 1)
		served[name] = done
		go func() {
			done <- c.Serve(serving, tenant, listener, func() (cert, key []byte) { return pair.CertPEM, pair.KeyPEM })
		}()
		clients[name] = clientAt(listener.Addr().String(), authority.CertPEM)
	}
	get := func(at, name string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+name+"/api/v1/namespaces", nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := clients[at].Do(request)
		if err != nil {
			return 0, err
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		g.Expect(response.ProtoMajor).To(Equal(2))
		return response.StatusCode, nil
	}
	for _, name := range []string{"red", "blue"} {
		g.Expect(get(name, name)).To(Or(Equal(http.StatusUnauthorized), Equal(http.StatusForbidden)))
	}
	_, err := get("red", "blue")
	g.Expect(err).To(MatchError(ContainSubstring("certificate is valid for red")))

	stop()
	g.Eventually(served["red"], later).Should(Receive(BeNil()))
	_, err = get("red", "red")
	g.Expect(err).To(HaveOccurred())
	g.Expect(get("blue", "blue")).To(Or(Equal(http.StatusUnauthorized), Equal(http.StatusForbidden)))
}

// clientAt returns a client that connects to one address.
func clientAt(address string, ca []byte) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, network, address)
		},
	}}
}

package chain_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/memtest"
)

// TestAuthenticationIsCheap: a tenant that has authenticated a certificate and a
// token has no goroutine.
func TestAuthenticationIsCheap(t *testing.T) {
	const tenants = 20
	g := NewWithT(t)
	c, _ := newChain(t)
	ca := newAuthority(t, "kubernetes")
	key, _, err := pki.NewSigningKey()
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := ca.Client("joe", nil, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	block, _ := pem.Decode(pair.CertPEM)
	certificate, err := x509.ParseCertificate(block.Bytes)
	g.Expect(err).NotTo(HaveOccurred())

	use := func(name string) {
		spec := specOf(t, name)
		spec.ClientCA, spec.SigningKey = ca.CertPEM, key
		tenant, err := c.Add(spec)
		g.Expect(err).NotTo(HaveOccurred())
		token := tokenOf(t, tenant)
		for _, prepare := range []func(*http.Request){
			func(r *http.Request) {
				r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}}
			},
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) },
		} {
			request, response := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/nodes", nil), httptest.NewRecorder()
			prepare(request)
			c.Handler(tenant).ServeHTTP(response, request)
			g.Expect(response.Code).To(Equal(http.StatusForbidden))
			g.Expect(response.Body.String()).NotTo(ContainSubstring("anonymous"))
		}
	}
	use("first")
	goroutines, bytes := runtime.NumGoroutine(), memtest.Heap()
	for i := range tenants {
		use(fmt.Sprint("tenant-", i))
	}
	g.Eventually(runtime.NumGoroutine, later).Should(BeNumerically("<=", goroutines+tenants/4))
	each := (memtest.Heap() - bytes) / tenants
	t.Logf("%d KB of heap for each tenant", each>>10)
	g.Expect(each).To(BeNumerically("<", 1<<20))
	runtime.KeepAlive(c)
}

// tokenOf returns a token of a service account that it creates.
func tokenOf(t testing.TB, tenant *chain.Tenant) string {
	t.Helper()
	g := NewWithT(t)
	createNamespace(t, tenant.Client(), namespace)
	accounts := tenant.Client().CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: robot}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	token, err := accounts.CreateToken(t.Context(), robot, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}

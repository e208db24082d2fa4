package chain_test

import (
	"crypto/tls"
	"maps"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// TestCertificates authenticates by the authority of each tenant. Their names
// are equal.
func TestCertificates(t *testing.T) {
	g := NewWithT(t)
	red, blue, _ := newClusters(t)
	now := time.Now()
	expired, err := red.ca.Client("joe", nil, time.Minute, now.Add(-time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	serving, err := red.ca.Server("joe", []string{"joe"}, nil, time.Hour, now)
	g.Expect(err).NotTo(HaveOccurred())
	for name, test := range map[string]struct {
		with credentials
		in   *cluster
		user string
	}{
		"own":                      {red.certificate(t, "joe", "team"), red, "joe"},
		"own, other tenant":        {blue.certificate(t, "joe", "team"), blue, "joe"},
		"other authority":          {red.certificate(t, "joe", "team"), blue, ""},
		"administrator of another": {red.certificate(t, "admin", "system:masters"), blue, ""},
		"self-made authority":      {certificateOf(t, newAuthority(t, "kubernetes"), "admin", "system:masters"), red, ""},
		"front proxy's authority":  {certificateOf(t, red.proxy, "admin", "system:masters"), red, ""},
		"for serving":              {usePair(serving), red, ""},
		"expired":                  {usePair(expired), red, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			user, err := test.in.whoAmI(t.Context(), test.with)
			if test.user == "" {
				g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(user.Username).To(Equal(test.user))
			g.Expect(user.Groups).To(ConsistOf("team", "system:authenticated"))
		})
	}
	t.Run("masters", func(t *testing.T) {
		_, err := red.client(red.certificate(t, "admin", "system:masters")).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

// headers are sent with each request.
func headers(set http.Header) credentials {
	return func(config *rest.Config) {
		config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				r = r.Clone(r.Context())
				maps.Copy(r.Header, set)
				return inner.RoundTrip(r)
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestFrontProxy: only the front proxy of the tenant names other users.
func TestFrontProxy(t *testing.T) {
	red, blue, _ := newClusters(t)
	named := headers(http.Header{
		"X-Remote-User": {"jane"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-Of": {"proxy"},
	})
	for name, test := range map[string]struct {
		with   credentials
		in     *cluster
		user   string
		refuse func(error) bool
	}{
		"own":             {with: certificateOf(t, red.proxy, chain.FrontProxyUser), in: red, user: "jane"},
		"other tenant":    {with: certificateOf(t, red.proxy, chain.FrontProxyUser), in: blue, refuse: apierrors.IsUnauthorized},
		"other name":      {with: certificateOf(t, red.proxy, "joe"), in: red, refuse: apierrors.IsUnauthorized},
		"client":          {with: red.certificate(t, chain.FrontProxyUser), in: red, user: chain.FrontProxyUser},
		"no certificate":  {with: func(*rest.Config) {}, in: red, refuse: apierrors.IsForbidden},
		"service account": {with: bearer(red.token(t, forever).Status.Token), in: red, user: robotUser},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			user, err := test.in.whoAmI(t.Context(), test.with, named)
			if test.refuse != nil {
				g.Expect(test.refuse(err)).To(BeTrue(), "%v", err)
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(user.Username).To(Equal(test.user))
			if test.user == "jane" {
				g.Expect(user.Extra).To(HaveKeyWithValue("of", ConsistOf("proxy")))
			}
		})
	}
}

// TestAuthorities: a client that chooses its certificate by the authorities
// that the server names finds those of users and of the front proxy.
func TestAuthorities(t *testing.T) {
	red, blue, _ := newClusters(t)
	for name, test := range map[string]struct {
		in   *cluster
		ca   pki.Authority
		name string
		user string
	}{
		"user":                        {red, red.ca, "joe", "joe"},
		"front proxy":                 {red, red.proxy, chain.FrontProxyUser, "jane"},
		"front proxy of other tenant": {blue, red.proxy, chain.FrontProxyUser, ""}, // the authorities have the same name
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pair, err := test.ca.Client(test.name, nil, time.Hour, time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			loaded, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
			g.Expect(err).NotTo(HaveOccurred())
			user, err := test.in.whoAmI(t.Context(), func(config *rest.Config) {
				config.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{loaded}
			}, headers(http.Header{"X-Remote-User": {"jane"}}))
			if test.user == "" {
				g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(user.Username).To(Equal(test.user))
		})
	}
}

// TestAnonymous: requests without credentials are those of system:anonymous, as
// those of a stock kube-apiserver; RBAC decides. Bad credentials are refused.
func TestAnonymous(t *testing.T) {
	g := NewWithT(t)
	red, _, _ := newClusters(t)
	_, err := red.client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(ContainSubstring(`User "system:anonymous"`)))
	red.allow(t, "health", anonymous, ruleFor("/healthz", "/version"))
	for path, want := range map[string]bool{"/healthz": true, "/version": true, "/metrics": false, "/api/v1/secrets": false, "/openid/v1/jwks": false} {
		g.Eventually(func() bool {
			_, err := red.client().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
			return err == nil
		}, later).Should(Equal(want), path)
	}
	_, err = red.client(bearer("unknown")).RESTClient().Get().AbsPath("/version").DoRaw(t.Context())
	g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
}

// TestBadCredentials: a tenant whose credentials cannot be read authenticates no
// requests from outside.
func TestBadCredentials(t *testing.T) {
	key, public, err := pki.NewSigningKey()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	ca := newAuthority(t, "kubernetes").CertPEM
	c, _ := newChain(t)
	for name, spec := range map[string]chain.Spec{
		"no-authority":      {SigningKey: key},
		"bad-authority":     {SigningKey: key, ClientCA: []byte("bad")},
		"bad-front-proxy":   {SigningKey: key, ClientCA: ca, FrontProxyCA: []byte("bad")},
		"no-signing-key":    {ClientCA: ca},
		"public-key":        {ClientCA: ca, SigningKey: public},
		"key-of-other-kind": {ClientCA: ca, SigningKey: ca},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec.Name = name
			tenant, err := c.Add(spec)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(get(t, c.Handler(tenant), "/version").Code).To(Equal(http.StatusUnauthorized))
		})
	}
}

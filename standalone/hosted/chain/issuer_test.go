package chain_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// addSpec adds a tenant with a domain of its own.
func addSpec(t testing.TB, c *chain.Chain, name string, key []byte) (*chain.Tenant, kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	spec := specOf(t, name)
	spec.ClusterDomain, spec.SigningKey = name+".test", key
	tenant, err := c.Add(spec)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	return tenant, client
}

func get(t testing.TB, handler http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return response
}

// TestDiscovery verifies tokens with the keys that each tenant publishes.
func TestDiscovery(t *testing.T) {
	g := NewWithT(t)
	red, blue, _ := newClusters(t)
	published := map[*cluster]jose.JSONWebKeySet{}
	for _, each := range []*cluster{red, blue} {
		client := each.admin.Discovery().RESTClient()
		data, err := client.Get().AbsPath(serviceaccount.OpenIDConfigPath).DoRaw(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(data).To(MatchJSON(`{
			"issuer": "` + issuer + `", "jwks_uri": "` + issuer + `/openid/v1/jwks", "response_types_supported": ["id_token"],
			"subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"]
		}`))
		data, err = client.Get().AbsPath(serviceaccount.JWKSPath).DoRaw(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		var keys jose.JSONWebKeySet
		g.Expect(json.Unmarshal(data, &keys)).To(Succeed())
		g.Expect(keys.Keys).To(HaveLen(1))
		g.Expect(keys.Keys[0].IsPublic()).To(BeTrue())
		published[each] = keys
	}
	for of := range published {
		token, err := jwt.ParseSigned(of.token(t, forever).Status.Token)
		g.Expect(err).NotTo(HaveOccurred())
		for in, keys := range published {
			err := token.Claims(keys.Keys[0].Key, &jwt.Claims{})
			g.Expect(err == nil).To(Equal(of == in), "token of %s with the key of %s: %v", of.name, in.name, err)
		}
	}
}

// TestOwnIssuer: tokens name the issuer of the spec, their audience stays, and
// those with the default issuer stay valid.
func TestOwnIssuer(t *testing.T) {
	const own = "https://gw.example.com/tenants/red"
	g := NewWithT(t)
	c, _ := newChain(t)
	red := newCluster(t, c, "red", func(spec *chain.Spec) { spec.Issuer = own })
	blue := newCluster(t, c, "blue")
	token := red.token(t, forever).Status.Token
	claims, keyID := claimsOf(t, token), keyIDOf(t, token)
	g.Expect(claims).To(And(HaveKeyWithValue("iss", own), HaveKeyWithValue("aud", ConsistOf(issuer))))
	g.Expect(claimsOf(t, blue.token(t, forever).Status.Token)).To(HaveKeyWithValue("iss", issuer))
	data, err := red.admin.Discovery().RESTClient().Get().AbsPath(serviceaccount.OpenIDConfigPath).DoRaw(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).To(And(ContainSubstring(`"issuer":"`+own+`"`), ContainSubstring(`"jwks_uri":"`+own+`/openid/v1/jwks"`)))
	for named, valid := range map[string]bool{own: true, issuer: true, own + "/": false, "https://gw.example.com/tenants/blue": false} {
		claims["iss"] = named
		_, err := red.whoAmI(t.Context(), bearer(forge(t, jose.ES256, red.key, keyID, claims)))
		g.Expect(err == nil).To(Equal(valid), "%s: %v", named, err)
	}
}

// TestDiscoveryIsAuthorized: the documents are public if RBAC says so.
func TestDiscoveryIsAuthorized(t *testing.T) {
	g := NewWithT(t)
	red, blue, _ := newClusters(t)
	red.allow(t, "discovery", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:unauthenticated", APIGroup: rbacv1.GroupName},
		ruleFor(serviceaccount.OpenIDConfigPath, serviceaccount.JWKSPath))
	for _, path := range []string{serviceaccount.OpenIDConfigPath, serviceaccount.JWKSPath} {
		g.Eventually(func() error {
			return red.client().RESTClient().Get().AbsPath(path).Do(t.Context()).Error()
		}, later).Should(Succeed())
		err := blue.client().RESTClient().Get().AbsPath(path).Do(t.Context()).Error()
		g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	}
	index, err := red.admin.Discovery().RESTClient().Get().AbsPath("/").DoRaw(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(index)).To(And(ContainSubstring(serviceaccount.OpenIDConfigPath), ContainSubstring(serviceaccount.JWKSPath)))
}

package escapes

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// tokenOf returns a token of the service account that every tenant has.
func tokenOf(ctx context.Context, of *local.Tenant) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}}
	request := &authenticationv1.TokenRequest{}
	Eventually(func() error { return of.Client.SubResource("token").Create(ctx, account, request) }).
		WithTimeout(kit.Soon).Should(Succeed())
	return request.Status.Token
}

// withToken returns a configuration whose only credentials are a token.
func withToken(config *rest.Config, token string) *rest.Config {
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	return config
}

var _ = Describe("The handler chain of several tenants", Ordered, func() {
	const secrets = "/api/v1/namespaces/default/secrets"
	var mallory, victim *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		shared := kit.WithIsolation(tenancyv1alpha1.IsolationShared)
		mallory, victim = tenant(ctx, shared), tenant(ctx, shared)
		kit.Create(ctx, victim.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "of-the-victim"}})
	})

	attack("the platform's watch of all changes, with the tenants' own credentials", "idea: an endpoint for the syncer alone",
		func(ctx SpecContext) {
			impersonating := rest.CopyConfig(mallory.Config)
			impersonating.Impersonate.UserName = "vc-platform"
			impersonating.Impersonate.Groups = []string{"system:masters"}
			foreign := rest.CopyConfig(victim.Config)
			foreign.CertData, foreign.KeyData = mallory.Config.CertData, mallory.Config.KeyData
			query := watchstream.Query([]watchstream.Kind{{Resource: corev1.SchemeGroupVersion.WithResource("secrets")}})
			for who, config := range map[string]*rest.Config{
				"admin": mallory.Config, "impersonating": impersonating, "another tenant": foreign,
				"service account": withToken(victim.Config, tokenOf(ctx, victim)), "anonymous": rest.AnonymousClientConfig(victim.Config),
			} {
				code, text := request(ctx, config, http.MethodGet, watchstream.Path+"?"+query.Encode(), nil)
				Expect(code).To(BeElementOf(http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound), who)
				Expect(text).NotTo(ContainSubstring("of-the-victim"), who)
			}
		})

	attack("a resource in the place of the platform's watch of all changes", "idea: a definition of the same group and name",
		func(ctx SpecContext) {
			definition := widgets()
			definition.Name = "changes." + watchstream.Group
			definition.Spec.Group = watchstream.Group
			definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "changes", Kind: "Change"}
			kit.Create(ctx, mallory.Client, definition)
			Eventually(func() int {
				code, _ := request(ctx, mallory.Config, http.MethodGet, watchstream.Path, nil)
				return code
			}).WithTimeout(kit.Soon).Should(Equal(http.StatusOK), "the tenant has the resource")
			pod := kit.Pod(metav1.NamespaceDefault, "beside-the-resource")
			kit.Create(ctx, mallory.Client, pod)
			Eventually(func() error {
				return super.Client.Get(ctx, client.ObjectKeyFromObject(kit.SuperOf(mallory, pod)), &corev1.Pod{})
			}).WithTimeout(kit.Soon).Should(Succeed(), "the platform still reads the host's changes")
		})

	attack("another tenant, with the certificate of its own administrator", "review: the authorities of all tenants have the same name",
		func(ctx SpecContext) {
			intruder := rest.CopyConfig(victim.Config)
			intruder.CertData, intruder.KeyData = mallory.Config.CertData, mallory.Config.KeyData
			for range 2 {
				code, _ := request(ctx, mallory.Config, http.MethodGet, secrets, nil)
				Expect(code).To(Equal(http.StatusOK))
				code, _ = request(ctx, intruder, http.MethodGet, secrets, nil)
				Expect(code).To(Equal(http.StatusUnauthorized))
			}
		})

	attack("another tenant, with the token of a service account of the same name", "kubernetes: a token cache has the token as the key",
		func(ctx SpecContext) {
			token := tokenOf(ctx, mallory)
			for range 2 { // the cache of its own tenant knows the token
				code, _ := request(ctx, withToken(mallory.Config, token), http.MethodGet, secrets, nil)
				Expect(code).To(Equal(http.StatusForbidden))
				code, _ = request(ctx, withToken(victim.Config, token), http.MethodGet, secrets, nil)
				Expect(code).To(Equal(http.StatusUnauthorized))
			}
		})

	attack("metrics, profiles and flags of the process that serves all tenants", "review: /metrics in a shared chain", func(ctx SpecContext) {
		for _, path := range []string{"/metrics", "/metrics/slis", "/debug/pprof/heap", "/flagz", "/statusz", "/configz", "/api/v1/componentstatuses"} {
			code, _ := request(ctx, mallory.Config, http.MethodGet, path, nil)
			Expect(code).To(Equal(http.StatusNotFound), path)
		}
	})

	attack("a review by which the token of another tenant is its own", "kubernetes: tokenreview REST.Create has no context",
		func(ctx SpecContext) {
			for of, want := range map[*local.Tenant]bool{mallory: true, victim: false} {
				review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: tokenOf(ctx, of)}}
				kit.Create(ctx, mallory.Client, review)
				Expect(review.Status.Authenticated).To(Equal(want))
			}
		})

	attack("another tenant, by its name in the Host header", "RFC 9113 §9.1.1: connections are reused for other hosts",
		func(ctx SpecContext) {
			sender, err := rest.HTTPClientFor(mallory.Config)
			Expect(err).NotTo(HaveOccurred())
			sent, err := http.NewRequestWithContext(ctx, http.MethodGet, mallory.Config.Host+secrets+"/of-the-victim", nil)
			Expect(err).NotTo(HaveOccurred())
			for _, host := range []string{victim.Config.ServerName, strings.TrimPrefix(victim.Config.Host, "https://"), victim.VC.Name} {
				sent.Host = host
				response, err := sender.Do(sent)
				Expect(err).NotTo(HaveOccurred())
				Expect(response.Body.Close()).To(Succeed())
				Expect(response.StatusCode).To(Equal(http.StatusNotFound), host)
			}
		})
})

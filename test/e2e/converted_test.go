package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Converted tenants", Ordered, func() {
	var cyan, plum *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		cyan = newTenantBy(ctx, "cyan", tenancyv1alpha1.ProvisionerConverted)
		plum = newTenantBy(ctx, "plum", tenancyv1alpha1.ProvisionerConverted)
		for _, t := range []*local.Tenant{cyan, plum} { // the gateway knows a tenant a moment after it is ready
			Eventually(t.Client.List).WithContext(ctx).WithArguments(&corev1.NamespaceList{}).Should(Succeed())
		}
	})

	It("have clients in pods, which the gateway knows by their tokens", Label(smoke), func(ctx SpecContext) {
		const file = "/var/run/secrets/kubernetes.io/serviceaccount/token"
		client, files := pod(newNamespace(ctx, cyan), "client", agnhost, "inclusterclient", "--poll-interval=1"), kubectlOf(ctx, cyan)
		create(ctx, cyan, client)
		shouldBeReady(ctx, cyan, client)
		said := logs(cyan.Super(client.Namespace), client.Name)
		Eventually(said).WithContext(ctx).Should(ContainSubstring("authz_header="))
		Consistently(said).WithContext(ctx).WithTimeout(soon / 30).ShouldNot(ContainSubstring("status=failed"))

		token, err := files.in(ctx, client, "cat", file)
		Expect(err).NotTo(HaveOccurred())
		Expect(userOf(ctx, files.config(), token)).To(Equal("system:serviceaccount:" + client.Namespace + ":default"))
		Expect(knows(ctx, super.Client, token)).To(BeFalse(), "it is none of the super cluster's")
	})

	It("do not reach each other's pods, or those of a hosted tenant, and are not reached by it", Label(smoke), func(ctx SpecContext) {
		here, there := newNamespace(ctx, cyan), newNamespace(ctx, cyan)
		web, front, neighbour := server(here, "web"), service(here, "web"), idle(there, "neighbour")
		create(ctx, cyan, web, front, neighbour)
		shouldBeReady(ctx, cyan, neighbour)
		own := []string{podAddress(shouldBeReady(ctx, cyan, web)), serviceAddress(front)}
		for _, address := range own {
			Eventually(connect(ctx, cyan, neighbour)).WithContext(ctx).WithArguments(address).Should(Succeed())
		}

		hosted := newNamespace(ctx, red)
		other := server(hosted, "web")
		create(ctx, red, other)
		for _, t := range []*local.Tenant{plum, red} {
			stranger := idle(newNamespace(ctx, t), "stranger")
			create(ctx, t, stranger)
			shouldBeReady(ctx, t, stranger)
			for _, address := range own {
				Expect(connect(ctx, t, stranger)(ctx, address)).To(beRefused)
			}
		}
		Expect(connect(ctx, cyan, neighbour)(ctx, podAddress(shouldBeReady(ctx, red, other)))).To(beRefused)
	})
})

// userOf returns the user of a token.
func userOf(ctx context.Context, config *rest.Config, token string) string {
	GinkgoHelper()
	as := rest.AnonymousClientConfig(config)
	as.BearerToken = token
	c, err := kubernetes.NewForConfig(as)
	Expect(err).NotTo(HaveOccurred())
	review, err := c.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return review.Status.UserInfo.Username
}

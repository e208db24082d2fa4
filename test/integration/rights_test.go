package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// right is a permission of the syncer that a spec checks.
type right = authorizationv1.ResourceAttributes

var _ = Describe("The syncer's permissions in the super cluster", func() {
	DescribeTable("do not include", func(ctx SpecContext, r right) {
		own, err := local.NewClient(account)
		Expect(err).NotTo(HaveOccurred())
		Expect(local.Allowed(ctx, own, right{Verb: "create", Resource: "pods", Namespace: "any"})).To(BeTrue(), "the review is about the syncer")
		Expect(local.Allowed(ctx, own, r)).To(BeFalse())
	},
		Entry("creating roles", right{Verb: "create", Group: rbacv1.GroupName, Resource: "clusterroles"}),
		Entry("extending its own role", right{Verb: "patch", Group: rbacv1.GroupName, Resource: "clusterroles", Name: "vc-syncer-base"}),
		Entry("granting roles", right{Verb: "create", Group: rbacv1.GroupName, Resource: "rolebindings", Namespace: "any"}),
		Entry("impersonating users", right{Verb: "impersonate", Resource: "users"}),
		Entry("requesting tokens", right{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: "any"}),
		Entry("running commands in pods", right{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "any"}),
		Entry("binding pods to nodes", right{Verb: "create", Resource: "pods", Subresource: "binding", Namespace: "any"}),
		Entry("changing nodes", right{Verb: "patch", Resource: "nodes", Name: "node-0"}),
		Entry("accessing kubelets", right{Verb: "get", Resource: "nodes", Subresource: "proxy"}),
		Entry("changing the spec of a VirtualCluster", right{Verb: "patch", Group: "tenancy.x-k8s.io", Resource: "virtualclusters", Namespace: "default"}),
		Entry("creating tenants", right{Verb: "create", Group: "tenancy.x-k8s.io", Resource: "virtualclusters", Namespace: "default"}),
		Entry("changing CustomResourceDefinitions", right{Verb: "patch", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}),
		Entry("updating the leases of others", right{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: rbac.Namespace, Name: "vc-manager"}),
		Entry("deleting whole collections", right{Verb: "deletecollection", Resource: "pods", Namespace: "any"}),
		Entry("everything", right{Verb: "*", Group: "*", Resource: "*"}),
	)

	It("suffice for leader election, and for the authorization of metrics", func(ctx SpecContext) {
		address := kit.FreeAddress(ctx)
		useSyncer(account, func(o *app.Options) {
			o.LeaderElect, o.LeaderElectNamespace = true, rbac.Namespace
			o.MetricsBindAddress = address
		})
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "vc-syncer"}}
		Eventually(kit.Read(ctx, super.Client, lease)).Should(HaveField("Spec.HolderIdentity", HaveValue(Not(BeEmpty()))))
		Eventually(func(g Gomega) {
			events := &corev1.EventList{}
			g.Expect(super.Client.List(ctx, events, client.InNamespace(rbac.Namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(HaveField("Reason", "LeaderElection")))
		}).WithContext(ctx).Should(Succeed())

		scraper, config := newAccount(ctx, "scraper")
		grant(ctx, scraper, rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
		Eventually(fetch).WithContext(ctx).WithArguments(address, "/metrics", account.BearerToken).Should(HavePrefix("403"))
		// Denials are cached for half a minute.
		Eventually(fetch).WithContext(ctx).WithArguments(address, "/metrics", config.BearerToken).WithTimeout(3 * kit.Soon).Should(HavePrefix("200"))
	})
})

// newAccount creates a service account of the super cluster, without
// permissions.
func newAccount(ctx context.Context, name string) (*corev1.ServiceAccount, *rest.Config) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: name}}
	kit.Create(ctx, super.Client, account)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, account)).To(Succeed()) })
	config, err := super.AccountConfig(ctx, account)
	Expect(err).NotTo(HaveOccurred())
	return account, config
}

// grant grants a service account permissions in the whole super cluster.
func grant(ctx context.Context, account *corev1.ServiceAccount, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: account.Name + "-"}, Rules: rules}
	kit.Create(ctx, super.Client, role)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
	}
	kit.Create(ctx, super.Client, binding)
	DeferCleanup(func(ctx SpecContext) {
		Expect(super.Client.Delete(ctx, binding)).To(Succeed())
		Expect(super.Client.Delete(ctx, role)).To(Succeed())
	})
}

// fetch reads a path of the metrics port with a token, and returns the status
// and the response.
func fetch(ctx context.Context, address, path, token string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	// The certificate is self-signed.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return fmt.Sprint(answer.StatusCode, " ", string(body)), err
}

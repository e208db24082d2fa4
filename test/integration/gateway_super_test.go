package integration

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/config/rbac"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// nodesOfSuper are the forms of a request for the nodes of the super cluster.
func nodesOfSuper() []string {
	return []string{"/api/v1/nodes", "/tenants/system/api/v1/nodes", "/api/v1/tenants/system/nodes", "/api/v1/nodes?project=system"}
}

// readsNodes lets a subject read the nodes of the super cluster.
func readsNodes(ctx context.Context, subject rbacv1.Subject) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "reads-nodes-"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
	}}
	kit.Create(ctx, super.Client, role)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	kit.Create(ctx, super.Client, binding)
	DeferCleanup(func(ctx SpecContext) {
		Expect(super.Client.Delete(ctx, binding)).To(Succeed())
		Expect(super.Client.Delete(ctx, role)).To(Succeed())
	})
}

// allowImpersonation permits the gateway what an admin has to permit it, so that
// users with certificates reach the super cluster.
func allowImpersonation(ctx context.Context, users, groups []string) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: rbac.Gateway}}
	impersonate := func(resource string, names []string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"impersonate"}}
	}
	grant(ctx, account, impersonate("users", users), impersonate("groups", groups))
	kit.AllowClientCA(ctx, super)
}

var _ = Describe("The super cluster through the gateway", Ordered, ContinueOnFailure, func() {
	var (
		red   *local.Tenant
		door  kit.Door
		token []string // the header of a user of the super cluster
	)

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		account, config := newAccount(ctx, "reads-nodes")
		readsNodes(ctx, rbacv1.Subject{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name})
		readsNodes(ctx, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"})
		token = []string{"Authorization", "Bearer " + config.BearerToken}
		allowImpersonation(ctx, []string{"jane"}, []string{"developers"})
		door = kit.StartGateway(ctx, super, red, func(o *gateway.Options) { o.SuperCluster = gateway.Impersonation })
	})

	It("is reached with its tokens, by name and without", func(ctx SpecContext) {
		for _, path := range nodesOfSuper() {
			Eventually(func() int { return door.Ask(ctx, nil, path, token...).Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusOK), path)
		}
		Expect(door.Ask(ctx, nil, "/api/v1/secrets", token...).Body).To(ContainSubstring("reads-nodes"), "its RBAC decides")
		Expect(door.Ask(ctx, nil, "/tenants/"+red.Key()+"/api", token...).Code).To(Equal(http.StatusForbidden))
	})

	It("is reached with its client certificates, whose users the gateway may impersonate", func(ctx SpecContext) {
		jane := kit.SuperUser(super, "jane", "developers")
		for _, path := range nodesOfSuper() {
			Eventually(func() int { return door.Ask(ctx, &jane, path).Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusOK), path)
		}
		Expect(door.Ask(ctx, &jane, "/api/v1/secrets").Body).To(ContainSubstring(`\"jane\" cannot list`), "its RBAC decides")
		for reason, user := range map[string][]string{
			"cannot impersonate resource": {"jo"}, "impersonates no user or group": {"jane", "system:masters"},
		} {
			certificate := kit.SuperUser(super, user[0], user[1:]...)
			reply := door.Ask(ctx, &certificate, "/api/v1/nodes")
			Expect(reply.Code).To(Equal(http.StatusForbidden))
			Expect(reply.Body).To(ContainSubstring(reason))
		}
		reply := door.Ask(ctx, &jane, "/api/v1/nodes", "Impersonate-User", "admin", "Impersonate-Group", "developers")
		Expect(reply.Code).To(Equal(http.StatusForbidden))
		Expect(reply.Body).To(ContainSubstring("--as"))
	})

	It("is nothing to users of tenants, and to callers of none", func(ctx SpecContext) {
		admin := userOf(red, "admin", "system:masters")
		unknown := door.Ask(ctx, &admin, "/tenants/systen/api")
		for _, path := range nodesOfSuper()[1:] {
			for _, reply := range []local.Reply{
				door.Ask(ctx, &admin, path), door.Ask(ctx, nil, path), door.Ask(ctx, nil, path, "Authorization", "Bearer "+tokenOf(ctx, red)),
				door.Ask(ctx, nil, path, "Authorization", "Bearer forged"), door.Ask(ctx, nil, path, "Authorization", "Basic YWRtaW46YWRtaW4="),
			} {
				Expect(reply.Code).To(Equal(http.StatusForbidden), path)
			}
		}
		Expect(unknown.Code).To(Equal(http.StatusForbidden))
	})
})

package escapes

import (
	"crypto/tls"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/config/rbac"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// The gateway of these attacks may do all in the super cluster: that it refuses
// them is not due to RBAC.
var _ = Describe("A gateway that impersonates users of the super cluster", Ordered, ContinueOnFailure, func() {
	const secrets = "/api/v1/secrets"
	var (
		mallory *local.Tenant
		door    kit.Door
	)
	// forms are all ways to ask for the secrets of the super cluster by its name.
	forms := []string{"/tenants/system" + secrets, "/api/v1/tenants/system/secrets", secrets + "?project=system"}

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		kit.Through(ctx, super, mallory)
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "vc-gateway-may-do-all"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: rbac.Namespace, Name: rbac.Gateway}},
		}
		kit.Create(ctx, super.Client, binding)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, binding)).To(Succeed()) })
		door = kit.StartGateway(ctx, super, mallory, func(o *gateway.Options) { o.SuperCluster = gateway.Impersonation })
		jane := kit.SuperUser(super, "jane")
		Eventually(func() string { return door.Ask(ctx, &jane, secrets).Body }).WithTimeout(kit.Soon).Should(ContainSubstring("jane"))
	})

	attack("the super cluster, by the credentials of a tenant", "idea: a tenant's admin signs any name", func(ctx SpecContext) {
		admin := kit.UserOf(super, mallory, "system:admin", time.Hour, mastersGroup, "system")
		token := tokenOf(ctx, mallory)
		for _, path := range forms {
			Expect(door.Ask(ctx, &admin, path).Code).To(Equal(http.StatusForbidden), path)
			Expect(door.Ask(ctx, nil, path, "Authorization", "Bearer "+token).Code).To(Equal(http.StatusForbidden), path)
			Expect(door.Ask(ctx, nil, path).Code).To(Equal(http.StatusForbidden), path)
		}
		Expect(door.Ask(ctx, &admin, "/api/v1/secrets", "X-Kubernetes-Project", "system").Code).To(Equal(http.StatusForbidden))
	})

	attack("system:masters of the super cluster, by a certificate that its CA has signed", "idea: masters are above RBAC", func(ctx SpecContext) {
		for _, names := range [][]string{
			{"jane", mastersGroup}, {"jane", "developers", mastersGroup}, {"system:admin"}, {"system:node:a", "system:nodes"},
			{"system:serviceaccount:kube-system:generic-garbage-collector"}, {"jane", "system:authenticated"},
		} {
			user := kit.SuperUser(super, names[0], names[1:]...)
			reply := door.Ask(ctx, &user, secrets)
			Expect(reply.Code).To(Equal(http.StatusForbidden), "%v", names)
			Expect(reply.Body).To(ContainSubstring("impersonates no user or group"), "%v", names)
		}
	})

	attack("the gateway's own permissions, by the headers of its impersonation", "idea: headers of impersonation", func(ctx SpecContext) {
		jane := kit.SuperUser(super, "jane")
		for _, header := range []string{"Impersonate-User", "impersonate_user", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Scopes"} {
			reply := door.Ask(ctx, &jane, secrets, header, "admin")
			Expect(reply.Code).To(Equal(http.StatusForbidden), header)
			Expect(reply.Body).To(ContainSubstring("--as"), header)
		}
		for _, dropped := range []string{"Impersonate-User", "Impersonate-User, Impersonate-Group, Authorization"} {
			reply := door.Ask(ctx, &jane, secrets, "Connection", dropped)
			Expect(reply.Code).To(Equal(http.StatusForbidden), dropped)
			Expect(reply.Body).To(ContainSubstring(`\"jane\" cannot list`), dropped)
		}
		padded := kit.SuperUser(super, "jane", " "+mastersGroup)
		Expect(door.Ask(ctx, &padded, secrets).Code).To(Equal(http.StatusUnauthorized))
	})

	attack("a tenant, by the credentials of the super cluster", "idea: an admin of the platform is no user of a tenant", func(ctx SpecContext) {
		admin := kit.SuperUser(super, "jane", mastersGroup)
		for _, path := range []string{"/tenants/" + mallory.Key() + secrets, secrets + "?project=" + mallory.Key()} {
			for _, certificate := range []*tls.Certificate{&admin, nil} {
				reply := door.Ask(ctx, certificate, path)
				Expect(reply.Code).To(Equal(http.StatusForbidden), path)
				Expect(reply.Body).To(ContainSubstring("there is no tenant"))
			}
		}
	})
})

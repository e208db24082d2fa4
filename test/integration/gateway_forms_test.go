package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	gatewayDomain = "gw.example.com"
	masters       = "system:masters"
)

// startGateway starts a gateway with hosts for tenants, until the container of
// specs ends.
func startGateway(ctx context.Context, knows *local.Tenant, change ...func(*gateway.Options)) kit.Door {
	GinkgoHelper()
	withHosts := func(o *gateway.Options) {
		o.Domain, o.Hosts = gatewayDomain, append(o.Hosts, gatewayDomain, "*."+gatewayDomain)
	}
	return kit.StartGateway(ctx, super, knows, append(change, withHosts)...)
}

// at asks a gateway by a TLS server name, with the same or another host.
func at(ctx context.Context, door kit.Door, certificate tls.Certificate, serverName, host, path string) local.Reply {
	GinkgoHelper()
	config := door.As(certificate)
	config.ServerName = serverName
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	return must(local.Ask(ctx, &http.Client{Transport: transport}, door.Address, path, "Host", host))
}

var _ = Describe("The hosts of a gateway", Ordered, func() {
	It("name a tenant, and a connection for one host serves no other", func(ctx SpecContext) {
		red, blue := tenant(ctx), tenant(ctx)
		door := startGateway(ctx, red)
		admin := userOf(red, "admin", masters)
		hostOf := func(t *local.Tenant) string { return t.Key() + "." + gatewayDomain }
		for _, c := range []struct {
			serverName, host, path string
			want                   int
		}{
			{hostOf(red), hostOf(red), "/api", http.StatusOK},
			{hostOf(red), hostOf(red) + ":443", "/api", http.StatusOK},
			{hostOf(red), strings.ToUpper(hostOf(red)), "/api", http.StatusOK},
			{hostOf(red), door.Address, "/api", http.StatusOK}, // tls-server-name of a kubeconfig
			{hostOf(red), hostOf(red), "/tenants/" + red.Key() + "/api", http.StatusOK},
			{hostOf(red), hostOf(red), "/tenants/" + blue.Key() + "/api", http.StatusBadRequest},
			{hostOf(red), hostOf(blue), "/api", http.StatusMisdirectedRequest},
			{hostOf(red), gatewayDomain, "/api", http.StatusMisdirectedRequest},
			{gatewayDomain, hostOf(red), "/api", http.StatusMisdirectedRequest},
			{gatewayDomain, gatewayDomain, "/api", http.StatusOK},
			{hostOf(blue), hostOf(blue), "/api", http.StatusForbidden},
			{"unknown." + gatewayDomain, "unknown." + gatewayDomain, "/api", http.StatusForbidden},
		} {
			Expect(at(ctx, door, admin, c.serverName, c.host, c.path).Code).To(Equal(c.want), "%+v", c)
		}
	})
})

var _ = Describe("Connections that a gateway passes on", Ordered, func() {
	It("are those for the name of a control plane, or T.direct below the domain, and as many as a tenant may have", func(ctx SpecContext) {
		red := tenant(ctx)
		door := startGateway(ctx, red, func(o *gateway.Options) { o.Limits.PassedPerTenant = 1 })
		ca := x509.NewCertPool()
		Expect(ca.AppendCertsFromPEM(door.CA)).To(BeTrue())
		// passed connects, and reports whether it is not the gateway that responds.
		passed := func(serverName string) (bool, error) {
			conn, err := tls.Dial("tcp", door.Address, &tls.Config{ServerName: serverName, InsecureSkipVerify: true})
			if err != nil {
				return false, err
			}
			_, own := conn.ConnectionState().PeerCertificates[0].Verify(x509.VerifyOptions{Roots: ca})
			return own != nil, conn.Close()
		}
		for serverName, want := range map[string]bool{
			red.Config.ServerName: true, red.Key() + ".direct." + gatewayDomain: true, strings.ToUpper(red.Key()) + ".DIRECT." + gatewayDomain: true,
			"unknown.direct." + gatewayDomain: false, red.Key() + "." + gatewayDomain: false, gatewayDomain: false, "unknown": false,
		} {
			Eventually(func() (bool, error) { return passed(serverName) }).WithTimeout(kit.Soon).Should(Equal(want), serverName)
		}
		var conn *tls.Conn
		Eventually(func() (err error) { // the one before may not be counted as closed yet
			conn, err = tls.Dial("tcp", door.Address, &tls.Config{ServerName: red.Config.ServerName, InsecureSkipVerify: true})
			return err
		}).WithTimeout(kit.Soon).Should(Succeed())
		_, err := passed(red.Config.ServerName)
		Expect(err).To(HaveOccurred(), "one too many")
		Expect(conn.Close()).To(Succeed())
		Eventually(func() (bool, error) { return passed(red.Config.ServerName) }).WithTimeout(kit.Soon).Should(BeTrue())
	})
})

var _ = Describe("The default tenant of a gateway", Ordered, func() {
	It("is created, and serves callers without a tenant", func(ctx SpecContext) {
		of := types.NamespacedName{Namespace: kit.VirtualCluster().Namespace, Name: "common"}
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: "vc-gateway-default-tenant"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{tenancyv1alpha1.GroupVersion.Group}, Resources: []string{"virtualclusters"}, Verbs: []string{"create"}},
		}}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: rbac.Namespace, Name: rbac.Gateway}},
		}
		kit.Create(ctx, super.Client, role, binding)
		vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
		DeferCleanup(func(ctx SpecContext) {
			Expect(super.Client.Delete(ctx, role)).To(Succeed())
			Expect(super.Client.Delete(ctx, binding)).To(Succeed())
			removeTenant(ctx, vc)
		})
		red := tenant(ctx)
		door := startGateway(ctx, red, func(o *gateway.Options) { o.DefaultTenant = of })
		Eventually(kit.Read(ctx, super.Client, vc)).WithTimeout(2 * kit.Soon).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		Expect(kit.Get(ctx, super.Client, vc)).To(Succeed())
		common := must(super.Connect(ctx, vc))

		By("by its RBAC for callers without credentials, or with a token that the gateway does not know")
		const path = "/version"
		Eventually(func() int { return door.Ask(ctx, nil, path).Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusOK))
		Expect(door.Ask(ctx, nil, "/api/v1/namespaces").Body).To(ContainSubstring("system:anonymous"))
		Expect(door.Ask(ctx, nil, path, "Authorization", "Bearer none").Code).To(Equal(http.StatusUnauthorized))
		Expect(door.Ask(ctx, nil, "/tenants/"+vc.Status.ClusterNamespace+path).Code).To(Equal(http.StatusOK))

		By("beside the tenants of others, who keep theirs")
		for _, t := range []*local.Tenant{red, common} {
			kit.Create(ctx, t.Client, configMap("default", "of", map[string]string{"key": t.Key()}))
			admin := userOf(t, "admin", masters)
			Expect(door.Ask(ctx, &admin, "/api/v1/namespaces/default/configmaps/of").Body).To(ContainSubstring(t.Key()))
		}
		admin := userOf(red, "admin", masters)
		Expect(door.Ask(ctx, &admin, "/tenants/"+common.Key()+path).Code).To(Equal(http.StatusForbidden))
		Expect(door.Ask(ctx, nil, "/tenants/"+red.Key()+path).Code).To(Equal(http.StatusForbidden))
	}, SpecTimeout(6*kit.Soon))
})

var _ = Describe("An External tenant through the gateway", Ordered, func() {
	It("is reached by tokens, and refuses certificates with what to do instead", func(ctx SpecContext) {
		elsewhere := startElsewhere(ctx, GinkgoT().TempDir())
		far, near := tenantElsewhere(ctx, elsewhere), tenant(ctx)
		door := startGateway(ctx, near, func(o *gateway.Options) { o.External = []string{"127.0.0.0/8"} })
		path := "/tenants/" + far.Key() + "/api/v1/namespaces"
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "reader"}}
		kit.Create(ctx, elsewhere.Client, account)
		token := []string{"Authorization", "Bearer " + must(elsewhere.AccountConfig(ctx, account)).BearerToken}
		Eventually(func() string { return door.Ask(ctx, nil, path, token...).Body }).WithTimeout(2*kit.Soon).
			Should(ContainSubstring("system:serviceaccount:"+account.Namespace+":"+account.Name), "the tenant's RBAC decides")

		By("by name alone: no key says whose the token is")
		Expect(door.Ask(ctx, nil, "/api/v1/namespaces", token...).Code).To(Equal(http.StatusForbidden))
		Expect(door.Ask(ctx, nil, path).Code).To(Equal(http.StatusForbidden), "without credentials, it does not show")

		By("never by certificates, of its own CA or another")
		for _, certificate := range []tls.Certificate{kit.SuperUser(elsewhere, "jane"), userOf(near, "admin", masters)} {
			reply := door.Ask(ctx, &certificate, path)
			Expect(reply.Code).To(BeElementOf(http.StatusUnauthorized, http.StatusForbidden))
			Expect(reply.Body).NotTo(ContainSubstring("kube-system"))
		}
		jane := kit.SuperUser(elsewhere, "jane")
		Expect(door.Ask(ctx, &jane, path).Body).To(ContainSubstring("a token if its control plane is External"))
		reply := door.Ask(ctx, nil, path, "X-Remote-User", "admin", "X-Remote-Group", masters)
		Expect(reply.Code).To(Equal(http.StatusForbidden))
	}, SpecTimeout(6*kit.Soon))
})

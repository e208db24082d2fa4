package escapes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The gateway and a control plane whose owner chooses its address and its name", Ordered, ContinueOnFailure, func() {
	const (
		own, domain = "gw.example.org", "tenants.example.org"
	)
	var (
		victim *local.Tenant
		door   kit.Door
	)
	// peer connects to the gateway by a name, and reports whether a CA has signed the
	// certificate of the server that responds.
	peer := func(serverName string, ca []byte) func() (bool, error) {
		return func() (bool, error) {
			conn, err := tls.Dial("tcp", door.Address, &tls.Config{ServerName: serverName, InsecureSkipVerify: true})
			if err != nil {
				return false, err
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(ca)
			_, err = conn.ConnectionState().PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
			return err == nil, conn.Close()
		}
	}

	BeforeAll(func(ctx SpecContext) {
		victim = tenant(ctx)
		door = kit.StartGateway(ctx, super, victim, func(o *gateway.Options) {
			o.Domain, o.Hosts = domain, append(o.Hosts, own, domain, "*."+domain)
		})
	})

	attack("connections of all to the gateway, by its own name as the server name of a kubeconfig", "review: a name that its owner chooses",
		func(ctx SpecContext) {
			for _, name := range []string{own, "localhost", victim.Key() + "." + domain} {
				shouldKnow(ctx, door, claims(ctx, name))
				Expect(peer(name, door.CA)()).To(BeTrue(), name)
				Expect(peer(strings.ToUpper(name), door.CA)()).To(BeTrue(), name)
			}
		})

	attack("connections to another's control plane, by its server name in a kubeconfig", "review: a name that its owner chooses",
		func(ctx SpecContext) {
			name := victim.Config.ServerName
			Expect(name).NotTo(BeEmpty())
			shouldKnow(ctx, door, claims(ctx, name))
			Expect(peer(name, victim.Config.CAData)()).To(BeTrue())
		})

	attack("any bytes to an address in the platform's network, by a control plane that is there", "review: a relay without TLS of its own",
		func(ctx SpecContext) {
			const name = "far.example.net"
			far := claims(ctx, name)
			shouldKnow(ctx, door, far)
			for _, serverName := range []string{name, far.Key() + ".direct." + domain} {
				Expect(peer(serverName, door.CA)()).To(BeTrue(), serverName)
			}
		})

	attack("requests to an address in the platform's network, by a name that leads there", "review: what a DNS answers changes",
		func(ctx SpecContext) {
			shipped := kit.DoorOf(kit.Through(ctx, super, victim).Config)
			far, apiserver := named(ctx, "localhost", func(cluster *clientcmdapi.Cluster) {
				server, err := url.Parse(cluster.Server)
				Expect(err).NotTo(HaveOccurred())
				cluster.Server = "https://localhost:" + server.Port()
			})
			for _, at := range []kit.Door{shipped, door} {
				shouldKnow(ctx, at, far)
				reply := at.Ask(ctx, nil, "/tenants/"+far.Key()+"/marker", "Authorization", foreignToken)
				Expect(reply.Code).To(Equal(http.StatusServiceUnavailable))
				Expect(reply.Body).To(ContainSubstring("--external-cidr"))
			}
			Expect(apiserver.Seen(local.Path("/marker"))).To(BeZero())
		})
})

// foreignToken has the credentials of a user of an External tenant.
const foreignToken = "Bearer of-the-tenant"

// shouldKnow waits until a gateway knows an External tenant, which it does not deny
// to callers with credentials.
func shouldKnow(ctx context.Context, at kit.Door, t *local.Tenant) {
	GinkgoHelper()
	code := func() int {
		return at.Ask(ctx, nil, "/tenants/"+t.Key()+"/version", "Authorization", foreignToken).Code
	}
	Eventually(code).WithTimeout(kit.Soon).ShouldNot(Equal(http.StatusForbidden))
}

// claims creates an External tenant whose kubeconfig says that its control plane
// has a server name. It has a certificate for it, of its own CA.
func claims(ctx context.Context, serverName string) *local.Tenant {
	GinkgoHelper()
	t, _ := named(ctx, serverName, func(cluster *clientcmdapi.Cluster) { cluster.TLSServerName = serverName })
	return t
}

// named creates an External tenant whose control plane has a certificate for a name,
// with a kubeconfig that is changed.
func named(ctx context.Context, serverName string, change func(*clientcmdapi.Cluster)) (*local.Tenant, *local.Hostile) {
	GinkgoHelper()
	there := hostedElsewhere(ctx)
	apiserver := kit.Hostile(there.Config, serverName)
	kubeconfig, err := apiserver.Kubeconfig()
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.Load(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range config.Clusters {
		change(cluster)
	}
	kubeconfig, err = clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	return kit.ExternalTenant(ctx, super, kit.VirtualCluster(), there, kubeconfig), apiserver
}

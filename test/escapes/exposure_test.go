package escapes

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// All tenants of an installation share one port, at which names tell them apart.
// Their admins write no VirtualClusters, but a user of the platform may, who must
// not get a name by which others are reached.
var _ = Describe("Names of hosted control planes", Ordered, func() {
	const (
		domain = "tenants.example.com"
		later  = 6 * kit.Soon
	)
	var (
		site           *kit.Site
		proxy          string
		hosts          = map[string]*kit.HostReplica{}
		mallory, alice *tenancyv1alpha1.VirtualCluster
	)

	admin := func(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) *rest.Config {
		GinkgoHelper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret}}
		Expect(kit.Get(ctx, site.Client, secret)).To(Succeed())
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[names.AdminKubeconfigKey])
		Expect(err).NotTo(HaveOccurred())
		config.Timeout = kit.Soon
		config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", proxy)
		}
		return config
	}
	claim := func(ctx context.Context, sans ...string) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := kit.Get(ctx, site.Client, mallory); err != nil {
				return err
			}
			mallory.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{ExtraSANs: sans}
			return site.Client.Update(ctx, mallory)
		})
	}
	// haveRejected succeeds when the condition reports all of the names.
	haveRejected := func(reason string, sans ...string) types.GomegaMatcher {
		messages := make([]types.GomegaMatcher, 0, len(sans))
		for _, san := range sans {
			messages = append(messages, MatchRegexp("(^|, )%s (is|has) ", regexp.QuoteMeta(san)))
		}
		return WithTransform(func(vc *tenancyv1alpha1.VirtualCluster) string {
			c := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionExtraSANsValid)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason {
				return ""
			}
			return c.Message
		}, And(messages...))
	}

	BeforeAll(func(ctx SpecContext) {
		site = kit.StartSite(ctx)
		proxy = kit.Forward(ctx, local.BelowDomain(domain, site.Service.Address))
		for _, name := range []string{"host-a", "host-b"} {
			hosts[name] = site.StartReplica(ctx, name, "--endpoint-domain="+domain, "--internal-address="+site.Service.Address, "--internal-cidr=10.0.0.0/8")
		}
		hosted := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerHosted }
		mallory, alice = kit.VirtualCluster(hosted), kit.VirtualCluster(hosted)
		kit.Create(ctx, site.Client, mallory, alice)
		for _, vc := range []*tenancyv1alpha1.VirtualCluster{mallory, alice} {
			Eventually(kit.Read(ctx, site.Client, vc)).WithTimeout(later).Should(
				kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
			Expect(kit.Get(ctx, site.Client, vc)).To(Succeed())
		}
	}, NodeTimeout(kit.Longest))

	attack("another tenant's host name with its own credentials", "idea: one port for all tenants", func(ctx SpecContext) {
		own, other := admin(ctx, mallory), admin(ctx, alice)
		code, _ := request(ctx, own, http.MethodGet, "/api/v1/namespaces", nil)
		Expect(code).To(Equal(http.StatusOK))
		own.Host = other.Host
		sender, err := rest.HTTPClientFor(own)
		Expect(err).NotTo(HaveOccurred())
		sent, err := http.NewRequestWithContext(ctx, http.MethodGet, own.Host+"/api/v1/namespaces", nil)
		Expect(err).NotTo(HaveOccurred())
		_, err = sender.Do(sent)
		Expect(err).To(MatchError(ContainSubstring("certificate signed by unknown authority")), "it does not even trust the other one")

		own.CAData = other.CAData
		code, _ = request(ctx, own, http.MethodGet, "/api/v1/namespaces", nil)
		Expect(code).To(Equal(http.StatusUnauthorized))
	})

	attack("an extra name that is a wildcard, of the machine, of a Service or of vc-host", "idea: SANs by which others are reached", func(ctx SpecContext) {
		for _, san := range []string{
			"*", "*." + domain, "*.example.com", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local", "vc-host.vc-system.svc", "a.localhost", alice.Status.ClusterNamespace + "." + names.ServerNameDomain,
			"127.0.0.1", "::1", "0.0.0.0", "169.254.169.254", "::ffff:127.0.0.1", "2130706433", "127.1", "UPPER.example.com", "a.example.com.", "a_b.example.com", "",
		} {
			err := claim(ctx, san)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%q: %v", san, err)
		}
		many := make([]string, 17)
		for i := range many {
			many[i] = fmt.Sprintf("a%d.example.com", i)
		}
		Expect(apierrors.IsInvalid(claim(ctx, many...))).To(BeTrue(), "too many names")
	})

	attack("an extra name that is another tenant's, or of the form of others", "idea: SANs by which others are reached", func(ctx SpecContext) {
		others := []string{alice.Status.ClusterNamespace + "." + domain, "future-0a1b2c-tenant." + domain, domain, "10.1.2.3"}
		Expect(claim(ctx, append(others, "mine.example.org")...)).To(Succeed())
		Eventually(kit.Read(ctx, site.Client, mallory)).Should(haveRejected(tenancyv1alpha1.ReasonNameReserved, others...))
		Expect(serves(site.Service.Address, others[0])()).To(ContainElement(others[0]), "alice is reached as before")
		Eventually(serves(site.Service.Address, "mine.example.org")).Should(And(
			ContainElement("mine.example.org"), Not(ContainElement(others[0]))), "the name that is allowed is served")

		const hers = "alice.example.org"
		kit.Edit(ctx, site.Client, alice, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{ExtraSANs: []string{hers}}
		})
		for _, host := range hosts { // the Service leads to each in turn
			Eventually(serves(host.Address, hers)).Should(ContainElement(hers), host.Name)
		}
		Expect(claim(ctx, hers)).To(Succeed()) // mallory is older
		Eventually(kit.Read(ctx, site.Client, mallory)).Should(haveRejected(tenancyv1alpha1.ReasonNameTaken, hers))
		Consistently(serves(site.Service.Address, hers)).Should(ContainElement(HavePrefix(alice.Status.ClusterNamespace)))
	}, SpecTimeout(kit.Longest))

	attack("a flood of connections through a replica that passes them on", "review: connections that are passed on are limited elsewhere", func(ctx SpecContext) {
		const flood, few = 600, 900 // each takes two files
		alices, err := kubernetes.NewForConfig(admin(ctx, alice))
		Expect(err).NotTo(HaveOccurred())
		plane := &tenancyv1alpha1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{
			Namespace: alice.Status.ClusterNamespace, Name: tenancyv1alpha1.HostedControlPlaneName,
		}}
		Expect(kit.Get(ctx, site.Client, plane)).To(Succeed())
		passing := hosts["host-a"]
		if plane.Status.Host == "host-a" {
			passing = hosts["host-b"]
		}
		var opened sync.WaitGroup
		flooding, end := context.WithCancel(ctx)
		DeferCleanup(opened.Wait)
		DeferCleanup(end)
		for range flood {
			opened.Go(func() {
				conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: alice.Status.ClusterNamespace + "." + domain, InsecureSkipVerify: true}}).
					DialContext(flooding, "tcp", passing.Address)
				if err != nil {
					return
				}
				<-flooding.Done() // it says nothing
				_ = conn.Close()
			})
		}
		open := func() (int, error) {
			files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", passing.Command.Process.Pid))
			return len(files), err
		}
		Eventually(open).Should(BeNumerically(">", 300), "the flood arrives")
		Eventually(func() error {
			_, err := alices.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
			return err
		}).WithTimeout(later).Should(Succeed())
		Eventually(open).WithTimeout(later).Should(BeNumerically("<", few))
		Consistently(open).Should(BeNumerically("<", few))
	}, SpecTimeout(kit.Longest))
})

// serves returns the names in the certificate that is served for a server name.
func serves(address, serverName string) func() ([]string, error) {
	return func() ([]string, error) {
		conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: serverName, InsecureSkipVerify: true}}).Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].DNSNames, nil
	}
}

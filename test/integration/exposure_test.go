package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// domain is that of the names of control planes in these specs. It is not
// resolved: clients dial the proxy, as with the record *.DOMAIN.
const domain = "tenants.example.com"

var _ = Describe("The address of a hosted control plane", Ordered, func() {
	const later = 6 * kit.Soon
	var (
		site  *kit.Site
		proxy string // an Ingress controller that passes TLS on
		red   = kit.VirtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "" })
		blue  = kit.VirtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "" })
	)

	// kubeconfig reads a kubeconfig of a tenant's admin.
	kubeconfig := func(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, key string) *rest.Config {
		GinkgoHelper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret}}
		Expect(kit.Get(ctx, site.Client, secret)).To(Succeed())
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[key])
		Expect(err).NotTo(HaveOccurred())
		return config
	}
	// through has a client dial an address, as a record of DNS would.
	through := func(config *rest.Config, address string) *rest.Config {
		config = rest.CopyConfig(config)
		config.Timeout = kit.Soon
		config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
		return config
	}
	// rootOf returns the UID of the namespace kube-system, which no two tenants
	// share.
	rootOf := func(ctx context.Context, config *rest.Config) (string, error) {
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return "", err
		}
		ns, err := c.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		return string(ns.GetUID()), err
	}
	ready := func(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) {
		GinkgoHelper()
		Eventually(kit.Read(ctx, site.Client, vc)).WithTimeout(later).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		Expect(kit.Get(ctx, site.Client, vc)).To(Succeed())
	}
	setSANs := func(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, sans ...string) {
		GinkgoHelper()
		kit.Edit(ctx, site.Client, vc, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{ExtraSANs: sans}
		})
	}
	haveSANs := func(status metav1.ConditionStatus, reason string) types.GomegaMatcher {
		return kit.HaveCondition(tenancyv1alpha1.ConditionExtraSANsValid, status, reason)
	}
	// certificate returns the one that is served for a name.
	certificate := func(name string) func() (*x509.Certificate, error) {
		return func() (*x509.Certificate, error) {
			conn, err := (&tls.Dialer{Config: &tls.Config{ServerName: name, InsecureSkipVerify: true}}).Dial("tcp", site.Service.Address)
			if err != nil {
				return nil, err
			}
			defer conn.Close()
			return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
		}
	}

	BeforeAll(func(ctx SpecContext) {
		site = kit.StartSite(ctx)
		proxy = kit.Forward(ctx, local.BelowDomain(domain, site.Service.Address))
		for _, name := range []string{"host-a", "host-b"} {
			site.StartReplica(ctx, name, "--endpoint-domain="+domain, "--internal-address="+site.Service.Address)
		}
		kit.Create(ctx, site.Client, red, blue)
		ready(ctx, red)
		ready(ctx, blue)
	}, NodeTimeout(kit.Longest))

	It("is a name below the domain, by which clients reach it through a proxy that passes TLS on", func(ctx SpecContext) {
		Expect(red.Status.Endpoint).To(Equal("https://" + red.Status.ClusterNamespace + "." + domain))
		roots := map[string]string{}
		for _, vc := range []*tenancyv1alpha1.VirtualCluster{red, blue} {
			config := kubeconfig(ctx, vc, names.AdminKubeconfigKey)
			Expect(config.ServerName).To(BeEmpty())
			var root string
			Eventually(func() (err error) { // a replica may not know yet which other one runs it
				root, err = rootOf(ctx, through(config, proxy))
				return err
			}).Should(Succeed())
			roots[root] = vc.Name
		}
		Expect(roots).To(HaveLen(2))
	})

	It("is one that HAProxy passes on by the name that a client sends, and no other name", func(ctx SpecContext) {
		config := through(kubeconfig(ctx, red, names.AdminKubeconfigKey), kit.StartHAProxy(ctx, domain, site.Service.Address))
		want, err := rootOf(ctx, kubeconfig(ctx, red, names.InternalKubeconfigKey))
		Expect(err).NotTo(HaveOccurred())
		Expect(rootOf(ctx, config)).To(Equal(want))

		c, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		watch, err := c.CoreV1().ConfigMaps(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()
		_, err = c.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(watch.ResultChan()).Should(Receive(HaveField("Object", HaveField("Name", "watched"))))

		config.ServerName = "unknown.example.org"
		_, err = rootOf(ctx, config)
		Expect(err).To(HaveOccurred())
	})

	It("is another one inside the super cluster, at which the platform reaches it, too", func(ctx SpecContext) {
		outside := kubeconfig(ctx, red, names.AdminKubeconfigKey)
		want, err := rootOf(ctx, through(outside, proxy))
		Expect(err).NotTo(HaveOccurred())
		for _, key := range []string{names.InternalKubeconfigKey, names.PlatformKubeconfigKey} {
			inside := kubeconfig(ctx, red, key)
			Expect(inside.Host).To(Equal("https://" + site.Service.Address))
			Expect(inside.ServerName).To(Equal(red.Status.ClusterNamespace + "." + names.ServerNameDomain))
			Expect(rootOf(ctx, inside)).To(Equal(want), key)
		}
	})

	It("has extra names without a restart, in its certificate and for clients", func(ctx SpecContext) {
		const extra = "shop." + domain
		config := kubeconfig(ctx, red, names.AdminKubeconfigKey)
		want, err := rootOf(ctx, through(config, proxy))
		Expect(err).NotTo(HaveOccurred())
		before, err := certificate(red.Status.ClusterNamespace + "." + domain)()
		Expect(err).NotTo(HaveOccurred())

		setSANs(ctx, red, extra, "shop.example.org", "192.0.2.1")
		Eventually(kit.Read(ctx, site.Client, red)).Should(haveSANs(metav1.ConditionTrue, tenancyv1alpha1.ReasonValid))
		byExtra := through(config, proxy)
		byExtra.Host = "https://" + extra
		Eventually(func() (string, error) { return rootOf(ctx, byExtra) }).WithTimeout(later).Should(Equal(want))
		Eventually(certificate("shop.example.org")).WithTimeout(later).Should(And( // by the other replica, too
			HaveField("DNSNames", ContainElements(append(before.DNSNames, extra, "shop.example.org"))),
			HaveField("IPAddresses", ContainElement(WithTransform(net.IP.String, Equal("192.0.2.1"))))))
		Expect(rootOf(ctx, through(config, proxy))).To(Equal(want), "by the name that it had before")

		setSANs(ctx, red)
		Eventually(certificate(red.Status.ClusterNamespace + "." + domain)).WithTimeout(later).Should(HaveField("DNSNames", Equal(before.DNSNames)))
		Eventually(func() error { _, err := certificate(extra)(); return err }).Should(HaveOccurred())
		Eventually(kit.Read(ctx, site.Client, red)).ShouldNot(haveSANs(metav1.ConditionTrue, tenancyv1alpha1.ReasonValid))
	}, SpecTimeout(kit.Longest))

	It("takes a name when the control plane that had it gives it up", func(ctx SpecContext) {
		const extra = "shared.example.org"
		setSANs(ctx, blue, extra)
		Eventually(kit.Read(ctx, site.Client, blue)).Should(haveSANs(metav1.ConditionTrue, tenancyv1alpha1.ReasonValid))
		Eventually(func(g Gomega) { // if a replica did not know, the older one would get the name
			for range 2 { // the service leads to each replica in turn
				g.Expect(certificate(extra)()).To(HaveField("DNSNames", ContainElement(HavePrefix(blue.Status.ClusterNamespace))))
			}
		}).WithTimeout(later).Should(Succeed())
		setSANs(ctx, red, extra) // the older one comes too late
		Eventually(kit.Read(ctx, site.Client, red)).Should(haveSANs(metav1.ConditionFalse, tenancyv1alpha1.ReasonNameTaken))
		Eventually(certificate(extra)).Should(HaveField("DNSNames", ContainElement(HavePrefix(blue.Status.ClusterNamespace))))
		Expect(kit.Get(ctx, site.Client, red)).To(Succeed())
		for _, c := range red.Status.Conditions {
			Expect(strings.Contains(c.Message, blue.Name)).To(BeFalse(), c.Message)
		}

		Expect(site.Client.Delete(ctx, blue)).To(Succeed())
		Eventually(func() error { return site.Client.Get(ctx, client.ObjectKeyFromObject(blue), blue) }).
			WithTimeout(later).Should(MatchError(ContainSubstring("not found")))
		Eventually(kit.Read(ctx, site.Client, red)).Should(haveSANs(metav1.ConditionTrue, tenancyv1alpha1.ReasonValid))
		Eventually(certificate(extra)).Should(HaveField("DNSNames", ContainElement(HavePrefix(red.Status.ClusterNamespace))))
	}, SpecTimeout(kit.Longest))
})

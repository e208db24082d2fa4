package integration

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	webhookconfig "github.com/virtualcluster/virtualcluster/config/webhook"
	"github.com/virtualcluster/virtualcluster/controllers/admission"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// startWebhook serves the manager's webhook during a container of specs, and
// registers it in the super cluster with the shipped manifest.
func startWebhook(ctx context.Context) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	ca, err := pki.NewAuthority("webhook", time.Hour, time.Now())
	Expect(err).NotTo(HaveOccurred())
	loopback := net.IPv4(127, 0, 0, 1)
	pair, err := ca.Server("webhook", nil, []net.IP{loopback}, time.Hour, time.Now())
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), pair.CertPEM, 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "tls.key"), pair.KeyPEM, 0o600)).To(Succeed())

	free, err := net.ListenTCP("tcp", &net.TCPAddr{IP: loopback})
	Expect(err).NotTo(HaveOccurred())
	address := free.Addr().(*net.TCPAddr)
	Expect(free.Close()).To(Succeed())
	probes := freeAddress(ctx)
	mgr, err := ctrl.NewManager(super.Config, ctrl.Options{
		Scheme: super.Client.Scheme(), Logger: logger, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: probes,
		WebhookServer: webhook.NewServer(webhook.Options{Host: address.IP.String(), Port: address.Port, CertDir: dir}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(admission.SetupWithManager(mgr)).To(Succeed())
	working, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(working) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})

	Eventually(probed(ctx, probes, "/readyz/webhook")).Should(Equal(http.StatusOK))

	configuration, err := webhookconfig.Configuration()
	Expect(err).NotTo(HaveOccurred())
	client := &configuration.Webhooks[0].ClientConfig
	url := "https://" + address.String() + *client.Service.Path
	*client = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca.CertPEM}
	kit.Create(ctx, super.Client, configuration)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, configuration)).To(Succeed()) })
}

var _ = Describe("The manager's webhook", Ordered, func() {
	BeforeAll(func(ctx SpecContext) { startWebhook(ctx) })

	It("rejects rules that do not compile when they are written, and nothing else", func(ctx SpecContext) {
		red := tenant(ctx)
		const why = "spec.quota.rules[0].expression: Invalid value: at 1:1: undeclared reference to 'objekt'"
		changed := red.VC.DeepCopy()
		Eventually(func() error {
			Expect(kit.Get(ctx, super.Client, changed)).To(Succeed())
			withRule("objekt.metadata")(changed)
			return super.Client.Update(ctx, changed)
		}).Should(And(MatchError(apierrors.IsInvalid, "invalid"), MatchError(ContainSubstring(why))))
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), withRule("tenant.name != ''"))
	})

	It("is not called for other writes, so that they do not depend on the manager", func(ctx SpecContext) {
		red := tenant(ctx, withRule("true"))
		configuration, err := webhookconfig.Configuration()
		Expect(err).NotTo(HaveOccurred())
		kit.Edit(ctx, super.Client, configuration, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			nobody := "https://127.0.0.1:1/"
			c.Webhooks[0].ClientConfig.URL = &nobody
		})
		change := func(f func(*tenancyv1alpha1.VirtualCluster)) error {
			vc, err := kit.Read(ctx, super.Client, red.VC)()
			if err != nil {
				return err
			}
			f(vc)
			return super.Client.Update(ctx, vc)
		}
		Eventually(change).WithArguments(withRule("1 == 1")).Should(MatchError(ContainSubstring("failed calling webhook")))
		Eventually(change).WithArguments(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Weight = 3 }).Should(Succeed())
	})
})

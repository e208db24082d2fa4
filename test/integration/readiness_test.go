package integration

import (
	"context"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"

	"github.com/virtualcluster/virtualcluster/config/crd"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	controllers "github.com/virtualcluster/virtualcluster/controllers/app"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// gated is a transport that delays requests for Pods until it is opened.
type gated struct {
	http.RoundTripper

	open <-chan struct{}
}

func (g gated) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, "/api/v1/pods") {
		select {
		case <-g.open:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	return g.RoundTripper.RoundTrip(req)
}

// probing starts a syncer with a health endpoint, until the spec ends, and
// returns the address.
func probing(ctx context.Context, config *rest.Config, change func(*app.Options)) string {
	GinkgoHelper()
	address := kit.FreeAddress(ctx)
	started := local.StartSyncer(config, logger, func(o *app.Options) {
		o.HealthProbeBindAddress = address
		change(o)
	})
	DeferCleanup(func() { Expect(started.Stop()).To(Succeed()) })
	Eventually(kit.Probed(ctx, address, "/healthz")).Should(Equal(http.StatusOK))
	return address
}

var _ = Describe("Readiness", func() {
	It("of a syncer requires synced caches", func(ctx SpecContext) {
		takeSyncerAway()
		open := make(chan struct{})
		slow := rest.CopyConfig(account)
		slow.Wrap(func(next http.RoundTripper) http.RoundTripper { return gated{next, open} })
		address := probing(ctx, slow, func(*app.Options) {})
		Consistently(kit.Probed(ctx, address, "/readyz")).Should(Equal(http.StatusInternalServerError))
		close(open)
		Eventually(kit.Probed(ctx, address, "/readyz")).Should(Equal(http.StatusOK))
	})

	It("of a syncer requires that it or another replica holds the Lease", func(ctx SpecContext) {
		takeSyncerAway()
		elect := func(namespace string) func(*app.Options) {
			return func(o *app.Options) {
				o.LeaderElect, o.LeaderElectNamespace = true, namespace
			}
		}
		for range 2 {
			Eventually(kit.Probed(ctx, probing(ctx, account, elect(rbac.Namespace)), "/readyz")).Should(Equal(http.StatusOK))
		}
		refused := probing(ctx, account, elect(metav1.NamespaceSystem))
		Consistently(kit.Probed(ctx, refused, "/readyz")).Should(Equal(http.StatusInternalServerError), "it may not read the Lease")
	})

	It("of a syncer that shares the tenants requires a Lease of its own", func(ctx SpecContext) {
		takeSyncerAway()
		shared := probing(ctx, account, func(o *app.Options) { o.ShareTenants = true })
		Eventually(kit.Probed(ctx, shared, "/readyz")).Should(Equal(http.StatusOK))
		Expect(kit.Probed(ctx, shared, "/readyz/lease")()).To(Equal(http.StatusOK))
	})

	It("of a manager that is not the leader requires another one that is", func(ctx SpecContext) {
		const ns = "led-elsewhere"
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "vc-manager"}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)),
			AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
		}}
		kit.Create(ctx, super.Client, kit.Namespace(ns), lease)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, kit.Namespace(ns))).To(Succeed()) })
		_, without := newAccount(ctx, "stranger")
		for config, want := range map[*rest.Config]int{super.Config: http.StatusOK, without: http.StatusInternalServerError} {
			ready := kit.Probed(ctx, standby(ctx, config, ns), "/readyz")
			Eventually(ready).Should(Equal(want))
			Consistently(ready).Should(Equal(want))
		}
	})
})

// program runs on a super cluster until its context ends.
type program func(context.Context, *rest.Config, component.Options) error

func runManager(ctx context.Context, super *rest.Config, options component.Options) error {
	return controllers.Run(ctx, super, controllers.Options{Options: options})
}

func runGateway(ctx context.Context, super *rest.Config, options component.Options) error {
	o := gateway.DefaultOptions()
	o.Options, o.Registerer, o.Address = options, prometheus.NewRegistry(), "127.0.0.1:0"
	o.CertSecret, o.Hosts = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "gateway"}, []string{"localhost"}
	return gateway.Run(ctx, super, o)
}

func runSyncer(ctx context.Context, super *rest.Config, options component.Options) error {
	o := app.DefaultOptions()
	o.Options, o.Registerer = options, prometheus.NewRegistry()
	return app.Run(ctx, super, o)
}

// A tenant's apiserver does not serve the tenancy API, so it serves as a super
// cluster without the CRDs.
var _ = Describe("A program that is started before the CRDs are installed", func() {
	waiting := func(ctx SpecContext, run program) (there *local.Tenant, address string, stop func()) {
		GinkgoHelper()
		there, address = tenant(ctx), kit.FreeAddress(ctx)
		log, ended := gbytes.NewBuffer(), make(chan error, 1)
		options := component.Options{
			Logger: textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log))), HealthProbeBindAddress: address,
		}
		running, cancel := context.WithCancel(context.WithoutCancel(ctx))
		go func() { ended <- run(running, there.Config, options) }()
		stop = sync.OnceFunc(func() {
			cancel()
			Eventually(ended).Should(Receive(Not(HaveOccurred())))
		})
		DeferCleanup(stop)
		Eventually(log).Should(gbytes.Say("Waiting for the CRDs"))
		Eventually(kit.Probed(ctx, address, "/healthz")).Should(Equal(http.StatusOK))
		Consistently(kit.Probed(ctx, address, "/readyz")).Should(Equal(http.StatusInternalServerError))
		return there, address, stop
	}

	DescribeTable("waits for them, not ready", func(ctx SpecContext, run program) {
		there, address, _ := waiting(ctx, run)
		crds, err := crd.All()
		Expect(err).NotTo(HaveOccurred())
		for _, definition := range crds {
			kit.Create(ctx, there.Client, definition)
		}
		Eventually(kit.Probed(ctx, address, "/readyz")).Should(Equal(http.StatusOK))
	},
		Entry("as vc-manager", program(runManager)),
		Entry("as vc-syncer", program(runSyncer)),
		Entry("as vc-gateway", program(runGateway)),
	)

	It("stops while it waits", func(ctx SpecContext) {
		_, _, stop := waiting(ctx, runManager)
		stop()
	})
})

// standby starts a manager that is not the leader, with a health endpoint,
// until the spec ends, and returns the address.
func standby(ctx context.Context, config *rest.Config, namespace string) string {
	GinkgoHelper()
	options := controllers.Options{Options: component.Options{
		Logger: logger, LeaderElect: true, LeaderElectNamespace: namespace, HealthProbeBindAddress: kit.FreeAddress(ctx),
	}}
	mgr, err := controllers.New(config, options)
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	return options.HealthProbeBindAddress
}

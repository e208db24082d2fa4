package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// outage is how long an apiserver cannot be reached.
var outage = atLength(30*time.Second, 8*time.Second)

const (
	// recovery is how long both sides may take to be equal again, on a machine that is busy. What could not be carried is tried
	// again every 15 seconds at least.
	recovery = 2 * time.Minute
	// normal is how long a pod may take to run where nothing is wrong.
	normal = 5 * time.Second
	// noPatrol keeps the patrol from mending what the syncer should have found by itself.
	noPatrol = time.Hour
)

// The specs share one syncer, which reaches the super cluster and one tenant through proxies, and two tenants that are busy. Each
// fault is in a file of its own.
var _ = Describe("Under faults", Ordered, ContinueOnFailure, func() {
	f := &faults{}

	BeforeAll(func(ctx SpecContext) {
		f.begin(ctx)
	})
	AfterEach(func() {
		f.mend()
	})

	f.superOutage()
	f.tenantOutage()
	f.expiredWatch()
	f.conflicts()
	f.slowness()
	f.kills()
})

// faults is what the specs about faults have in common.
type faults struct {
	// super and far are what the syncer reaches the super cluster and the tenant red through.
	super, far *local.Proxy
	// elsewhere is the process that red's control plane runs in.
	elsewhere *local.SuperCluster
	// red is a tenant behind a proxy, blue one without.
	red, blue *local.Tenant
	copies    *local.Copies
}

// begin makes all that, and puts a syncer behind the proxies in the place of the one that other specs share.
func (f *faults) begin(ctx context.Context) {
	GinkgoHelper()
	f.elsewhere = startOtherHost(ctx)
	DeferCleanup(func() { Expect(f.elsewhere.Stop()).To(Succeed()) })
	f.red = f.tenantBehindProxy(ctx)
	f.blue = tenant(ctx)
	var err error
	f.copies, err = local.WatchCopies(ctx, super.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(f.copies.Stop()).To(Succeed()) })

	f.super = proxy(super.Config.Host)
	useSyncer(f.super.Config(account), func(o *app.Options) { o.Patrol = noPatrol })
}

// mend takes all faults away.
func (f *faults) mend() {
	GinkgoHelper()
	for _, p := range []*local.Proxy{f.super, f.far} {
		Expect(p.Resume()).To(Succeed())
		p.Slow(0, 0)
	}
}

// tenantBehindProxy makes a tenant whose control plane runs in another process. The client goes around the proxy.
func (f *faults) tenantBehindProxy(ctx context.Context) *local.Tenant {
	GinkgoHelper()
	there := kit.ControlPlane(ctx, f.elsewhere)
	direct := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: there.Key(), Name: names.AdminKubeconfigSecret}}
	Expect(kit.Get(ctx, f.elsewhere.Client, direct)).To(Succeed())
	f.far = proxy(there.Config.Host)
	kubeconfig, err := f.far.Kubeconfig(direct.Data[names.AdminKubeconfigKey])
	Expect(err).NotTo(HaveOccurred())
	return tenantThrough(ctx, there, kubeconfig)
}

// proxy is a proxy in front of a server.
func proxy(server string) *local.Proxy {
	GinkgoHelper()
	p, err := local.NewProxy(server)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Close)
	return p
}

// busy has both tenants work in a namespace, until they are looked at or the spec ends.
func (f *faults) busy(ctx context.Context, ns string) []*load {
	GinkgoHelper()
	loads := []*load{newLoad(ctx, f.red, ns), newLoad(ctx, f.blue, ns)}
	for _, l := range loads {
		l.start(ctx)
		DeferCleanup(l.end)
	}
	return loads
}

// shouldBeWhole ends loads, and looks for what the fault has left of them.
func (f *faults) shouldBeWhole(ctx context.Context, loads []*load) {
	GinkgoHelper()
	for _, l := range loads {
		l.end()
	}
	for _, l := range loads {
		l.shouldBeWhole(ctx, f.copies)
	}
}

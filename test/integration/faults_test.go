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

// outage is the time for which an apiserver is unreachable.
var outage = atLength(30*time.Second, 8*time.Second)

const (
	// recovery is how long both sides may take to agree again, on a busy
	// machine. Failed reconciles are retried every 15 seconds at least.
	recovery = 2 * time.Minute
	// normal is how long a pod may take to run without faults.
	normal = 5 * time.Second
	// noPatrol prevents the patrol from repairing what the syncer should have
	// found by itself.
	noPatrol = time.Hour
)

// The specs share one syncer, which connects to the super cluster and one
// tenant through proxies, and two busy tenants. Each fault is in a file of its
// own.
var _ = Describe("Under faults", Ordered, ContinueOnFailure, func() {
	f := &faults{}

	BeforeAll(func(ctx SpecContext) {
		f.begin(ctx)
	})
	AfterEach(func() {
		f.repair()
	})

	f.superOutage()
	f.tenantOutage()
	f.expiredWatch()
	f.conflicts()
	f.slowness()
	f.kills()
})

// faults has the environment that the specs about faults share.
type faults struct {
	// super and far are the syncer's proxies to the super cluster and the
	// tenant red.
	super, far *local.Proxy
	// elsewhere is the process of red's control plane.
	elsewhere *local.SuperCluster
	// red is a tenant behind a proxy, blue one without.
	red, blue *local.Tenant
	copies    *local.Copies
}

// begin creates the environment, and replaces the syncer that other specs share
// with one behind the proxies.
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

// repair ends all faults.
func (f *faults) repair() {
	GinkgoHelper()
	for _, p := range []*local.Proxy{f.super, f.far} {
		Expect(p.Resume()).To(Succeed())
		p.Slow(0, 0)
	}
}

// tenantBehindProxy creates a tenant whose control plane runs in another
// process. The tenant's client bypasses the proxy.
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

// proxy starts a proxy in front of a server.
func proxy(server string) *local.Proxy {
	GinkgoHelper()
	p, err := local.NewProxy(server)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Close)
	return p
}

// busy starts loads of both tenants in a namespace, which run until they are
// checked or the spec ends.
func (f *faults) busy(ctx context.Context, ns string) []*load {
	GinkgoHelper()
	loads := []*load{newLoad(ctx, f.red, ns), newLoad(ctx, f.blue, ns)}
	for _, l := range loads {
		l.start(ctx)
		DeferCleanup(l.end)
	}
	return loads
}

// shouldBeWhole stops the loads, and checks them.
func (f *faults) shouldBeWhole(ctx context.Context, loads []*load) {
	GinkgoHelper()
	for _, l := range loads {
		l.end()
	}
	for _, l := range loads {
		l.shouldBeWhole(ctx, f.copies)
	}
}

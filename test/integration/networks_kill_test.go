package integration

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/syncer/networks"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// networkCluster is the control plane of a tenant for one process.
type networkCluster struct {
	processCluster

	config *rest.Config
	http   *http.Client
}

func (c networkCluster) GetConfig() *rest.Config     { return c.config }
func (c networkCluster) GetHTTPClient() *http.Client { return c.http }
func (networkCluster) Problem(string, string)        {}

// networkProcess runs the syncer of the networks of one tenant.
type networkProcess struct {
	tenant   *local.Tenant
	template *networks.Template
	cache    cache.Cache
	http     *http.Client
	// pods is how many pods are on each network.
	pods atomic.Int32
}

// newNetworkProcess returns a process that does not run yet.
func newNetworkProcess(ctx context.Context, t *local.Tenant) *networkProcess {
	GinkgoHelper()
	template, err := networks.ReadTemplate("")
	Expect(err).NotTo(HaveOccurred())
	connection, err := rest.HTTPClientFor(t.Config)
	Expect(err).NotTo(HaveOccurred())
	return &networkProcess{tenant: t, template: template, cache: cacheOf(ctx, t.Config), http: connection}
}

// run runs a process that is killed at a write, until then or until it is done.
func (p *networkProcess) run(ctx context.Context, write int, before bool, done func() bool) {
	GinkgoHelper()
	ctx, kill := context.WithTimeout(ctx, kit.Soon)
	defer kill()
	k := &killer{kill: kill, before: before, left: write}
	syncer := networks.NewSyncer(p.template, networks.NewTable(p.template.Name()), briefly, networks.Tenant{
		Key:     p.tenant.Key(),
		Cluster: networkCluster{processCluster{k.wrap(p.tenant.Client), p.cache}, p.tenant.Config, p.http},
		Pods: func(context.Context) (map[string]int, error) {
			return map[string]int{"net-1": int(p.pods.Load())}, nil
		},
		Wake: func(string) {},
	})
	runUntil(ctx, syncer.Run, kill, 100*time.Millisecond, done)
}

var _ = Describe("A syncer that is killed at every write for a network", Ordered, func() {
	var p *networkProcess

	BeforeAll(func(ctx SpecContext) {
		t := tenant(ctx)
		takeSyncerAway()
		p = newNetworkProcess(ctx, t)
	})

	reach := func(ctx context.Context, what string, done func() bool) {
		GinkgoHelper()
		reach(ctx, p, what, 4, 40, done)
	}

	It("installs the API, makes networks ready, and removes them when their pods have ended", func(ctx SpecContext) {
		found := network("net-1", networkv1.TypeFlat)
		phase := func(name string) networkv1.Phase {
			n, err := kit.Read(ctx, p.tenant.Client, network(name, ""))()
			if err != nil {
				return ""
			}
			return n.Status.Phase
		}
		reach(ctx, "the default network is ready", func() bool { return phase("default") == networkv1.PhaseReady })
		for range 2 {
			createNetwork(ctx, p.tenant, network("net-1", networkv1.TypeFlat))
			reach(ctx, "the network is ready", func() bool { return phase("net-1") == networkv1.PhaseReady })
			p.pods.Store(2)
			Expect(p.tenant.Client.Delete(ctx, found)).To(Succeed())
			reach(ctx, "the network waits for its pods", func() bool { return phase("net-1") == networkv1.PhaseTerminating })
			for write := range 2 {
				until := time.Now().Add(kit.Quiet)
				p.run(ctx, 1+write, true, func() bool { return time.Now().After(until) })
			}
			Expect(kit.Read(ctx, p.tenant.Client, found)()).To(HaveField("Finalizers", ConsistOf(networkv1.Finalizer)))
			p.pods.Store(0)
			reach(ctx, "the network is gone", func() bool { return apierrors.IsNotFound(kit.Get(ctx, p.tenant.Client, found)) })
		}
	})
})

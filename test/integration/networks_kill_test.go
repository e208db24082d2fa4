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
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(end)
	of, err := cache.New(t.Config, cache.Options{Scheme: super.Client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	go func() { _ = of.Start(living) }()
	template, err := networks.ReadTemplate("")
	Expect(err).NotTo(HaveOccurred())
	connection, err := rest.HTTPClientFor(t.Config)
	Expect(err).NotTo(HaveOccurred())
	return &networkProcess{tenant: t, template: template, cache: of, http: connection}
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
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		syncer.Run(ctx)
	}()
	for {
		select {
		case <-ended:
			return
		case <-time.After(100 * time.Millisecond):
			if done() {
				kill()
			}
		}
	}
}

var _ = Describe("A syncer that is killed at every write for a network", Ordered, func() {
	var p *networkProcess

	BeforeAll(func(ctx SpecContext) {
		t := tenant(ctx)
		takeSyncerAway()
		p = newNetworkProcess(ctx, t)
	})

	// reach runs processes, each of which is killed: at the first write before it
	// took effect, at the first one after it, and so on.
	reach := func(ctx context.Context, what string, done func() bool) {
		GinkgoHelper()
		processes := 0
		for ; !done(); processes++ {
			Expect(processes).To(BeNumerically("<", 40), what)
			p.run(ctx, 1+processes/2%4, processes%2 == 0, done)
		}
		GinkgoWriter.Printf("%s after %d processes\n", what, processes)
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

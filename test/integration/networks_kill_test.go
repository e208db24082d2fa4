package integration

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network/flat"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
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
	cloud    *cloud
	secrets  *kinds.Kind
	cache    cache.Cache
	http     *http.Client
	// pods is how many pods are on each network.
	pods atomic.Int32
	// released is how often the policies of net-1 were deleted, which fails every
	// other time.
	released atomic.Int32
}

// newNetworkProcess returns a process that does not run yet.
func newNetworkProcess(ctx context.Context, t *local.Tenant) *networkProcess {
	GinkgoHelper()
	template, err := networks.ReadTemplate("")
	Expect(err).NotTo(HaveOccurred())
	connection, err := rest.HTTPClientFor(t.Config)
	Expect(err).NotTo(HaveOccurred())
	return &networkProcess{
		tenant: t, template: template, cloud: newCloud(networkv1.TypeVPC), secrets: secretKind(), cache: cacheOf(ctx, t.Config), http: connection,
	}
}

// secretKind returns the kind of Secrets that a syncer writes.
func secretKind() *kinds.Kind {
	GinkgoHelper()
	table, err := app.Table()
	Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(table, func(k *kinds.Kind) bool { return k.Name == "Secret" })
	Expect(i).To(BeNumerically(">=", 0))
	return table[i]
}

// guardOf returns the guard of a tenant, which writes with a client.
func guardOf(c client.Client, tenant types.UID) *guard.Guard {
	return &guard.Guard{
		UID: tenant, Client: c, Namespaced: c.IsObjectNamespaced, Rejected: func() {},
		Namespace: func(ctx context.Context, name string) (*corev1.Namespace, error) {
			ns := kit.Namespace(name)
			return ns, kit.Get(ctx, super.Client, ns)
		},
	}
}

// run runs a process that is killed at a write, until then or until it is done.
func (p *networkProcess) run(ctx context.Context, write int, before bool, done func() bool) {
	GinkgoHelper()
	ctx, kill := context.WithTimeout(ctx, kit.Soon)
	defer kill()
	k := &killer{kill: kill, before: before, left: write}
	who := plugins.Tenant{Key: p.tenant.Key(), Name: p.tenant.VC.Name, Namespace: p.tenant.VC.Namespace, UID: p.tenant.VC.UID}
	metrics, err := networks.NewMetrics(prometheus.NewRegistry())
	Expect(err).NotTo(HaveOccurred())
	providers, err := networks.NewProviders(networks.ProviderOptions{Logger: logger, Metrics: metrics},
		flat.Registration(), p.cloud.registration())
	Expect(err).NotTo(HaveOccurred())
	syncer := networks.NewSyncer(p.template, providers, networks.NewTable(p.template.Name()), briefly, networks.Tenant{
		Tenant:  who,
		Vault:   &networks.Vault{Reader: super.Client, Guard: guardOf(k.wrap(super.Client), who.UID), Kind: p.secrets, Tenant: who},
		Cluster: networkCluster{processCluster{k.wrap(p.tenant.Client), p.cache}, p.tenant.Config, p.http},

		ServiceRanges: []netip.Prefix{netip.MustParsePrefix(p.tenant.VC.Status.ServiceCIDR)},
		Pods: func(context.Context) (map[string]int, error) {
			return map[string]int{"net-1": int(p.pods.Load())}, nil
		},
		Wake:   func(string) {},
		Review: func([]string) {},
		Release: func(_ context.Context, name string) error {
			if name == "net-1" && p.released.Add(1)%2 == 1 {
				return errors.New("killed")
			}
			return nil
		},
	})
	runUntil(ctx, syncer.Run, kill, 100*time.Millisecond, done)
}

var _ = Describe("A syncer that is killed at every write for a network", Label("long"), Ordered, func() {
	var p *networkProcess

	BeforeAll(func(ctx SpecContext) {
		t := tenant(ctx)
		endpointsOfAPI(ctx, t)
		takeSyncerAway()
		p = newNetworkProcess(ctx, t)
	})

	reach := func(ctx context.Context, what string, done func() bool) {
		GinkgoHelper()
		reach(ctx, p, what, 5, 60, done)
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
		ranges := []networkv1.CIDR{partOf(p.tenant, 64, 27), partOf(p.tenant, 128, 27)}
		for _, of := range []*networkv1.Network{network("net-1", networkv1.TypeFlat, withRanges(ranges...)), network("net-1", networkv1.TypeVPC, withVPC("vpc-1"))} {
			createNetwork(ctx, p.tenant, of)
			reach(ctx, "the network is ready", func() bool { return phase("net-1") == networkv1.PhaseReady })
			provided := BeEmpty()
			if of.Spec.Type == networkv1.TypeVPC {
				provided = Equal(of.UID)
			}
			Expect(p.cloud.of(p.tenant, "net-1")).To(provided)
			if of.Spec.Service != nil {
				Expect(rangesOf(ctx, p.tenant, "net-1")()).To(ConsistOf(string(ranges[0]), string(ranges[1])))
			}
			service, slice := apiServiceOf("net-1")
			reach(ctx, "its Services are there", func() bool {
				return kit.Get(ctx, p.tenant.Client, service) == nil && kit.Get(ctx, p.tenant.Client, slice) == nil
			})
			p.pods.Store(2)
			Expect(p.tenant.Client.Delete(ctx, found)).To(Succeed())
			reach(ctx, "the network waits for its pods", func() bool { return phase("net-1") == networkv1.PhaseTerminating })
			for write := range 2 {
				until := time.Now().Add(kit.Quiet)
				p.run(ctx, 1+write, true, func() bool { return time.Now().After(until) })
			}
			Expect(kit.Read(ctx, p.tenant.Client, found)()).To(HaveField("Finalizers", ConsistOf(networkv1.Finalizer)))
			Expect(p.released.Load()).To(BeZero(), "while it has pods, it keeps its policies")
			p.pods.Store(0)
			Expect(p.cloud.of(p.tenant, "net-1")).To(provided)
			reach(ctx, "the network is gone", func() bool { return apierrors.IsNotFound(kit.Get(ctx, p.tenant.Client, found)) })
			reach(ctx, "its ranges are gone", func() bool {
				left, err := rangesOf(ctx, p.tenant, "net-1")()
				return err == nil && len(left) == 0
			})
			for _, obj := range []client.Object{service, slice} {
				Expect(kit.Get(ctx, p.tenant.Client, obj)).To(MatchError(apierrors.IsNotFound, "not found"), "it is deleted before the network is gone")
			}
			Expect(p.cloud.of(p.tenant, "net-1")).To(BeEmpty())
			Expect(p.released.Swap(0)).To(BeNumerically(">=", 2), "its policies are deleted before it is gone")
		}
	})
})

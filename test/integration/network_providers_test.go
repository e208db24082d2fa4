package integration

import (
	"context"
	"errors"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins"
	contract "github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// cloud provides networks of a type, and does what specs tell it to.
type cloud struct {
	kind string

	mu      sync.Mutex
	changed func(tenant, network string)
	// has are the UIDs of the networks that it has, by tenant and name.
	has map[[2]string]types.UID
	// replies are what it does for a network, by the name.
	replies map[string]func(ctx context.Context) (contract.State, error)
	// prepares are what it does for a pod, by the name.
	prepares map[string]func(contract.Pod) (contract.Attachment, error)
	// pods are the UIDs of the copies that it has prepared.
	pods map[types.UID]bool
	// keeps are the names of the networks and pods that it does not release yet.
	keeps map[string]bool
}

func newCloud(kind string) *cloud {
	return &cloud{
		kind: kind, has: map[[2]string]types.UID{}, keeps: map[string]bool{},
		replies:  map[string]func(context.Context) (contract.State, error){},
		prepares: map[string]func(contract.Pod) (contract.Attachment, error){}, pods: map[types.UID]bool{},
	}
}

func (c *cloud) registration() contract.Registration {
	return contract.Registration{Type: c.kind, New: func(env contract.Environment) (contract.Provider, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed = env.Changed
		return c, nil
	}}
}

func (c *cloud) Ensure(ctx context.Context, n contract.Network) (contract.State, error) {
	c.mu.Lock()
	c.has[[2]string{n.Tenant.Key, n.Name}] = n.UID
	reply := c.replies[n.Name]
	c.mu.Unlock()
	if reply != nil {
		return reply(ctx)
	}
	return contract.State{Ready: true}, nil
}

func (c *cloud) Delete(_ context.Context, n contract.Network) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keeps[n.Name] {
		return false, nil
	}
	delete(c.has, [2]string{n.Tenant.Key, n.Name})
	return true, nil
}

func (c *cloud) PreparePod(_ context.Context, p contract.Pod) (contract.Attachment, error) {
	c.mu.Lock()
	prepare := c.prepares[p.Name]
	c.pods[p.UID] = true
	c.mu.Unlock()
	if prepare != nil {
		return prepare(p)
	}
	return contract.Attachment{Ready: true, CNIArgs: "port-of-" + p.Name}, nil
}

func (c *cloud) ReleasePod(_ context.Context, p contract.Pod) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keeps[p.Name] {
		return false, nil
	}
	delete(c.pods, p.UID)
	return true, nil
}

// prepare sets what it does for pods of a name.
func (c *cloud) prepare(name string, with func(contract.Pod) (contract.Attachment, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prepares[name] = with
}

// attends reports whether it has prepared a copy.
func (c *cloud) attends(copied *corev1.Pod) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods[copied.UID]
}

// reply sets what it does for networks of a name.
func (c *cloud) reply(name string, with func(ctx context.Context) (contract.State, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies[name] = with
}

// keep sets whether it releases networks and pods of a name.
func (c *cloud) keep(name string, keeps bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keeps[name] = keeps
}

// of returns the UID of the network that it has of a tenant; empty if it has
// none.
func (c *cloud) of(t *local.Tenant, name string) types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.has[[2]string{t.Key(), name}]
}

// networksOf returns how many networks it has of a tenant.
func (c *cloud) networksOf(t *local.Tenant) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for of := range c.has {
		if of[0] == t.Key() {
			n++
		}
	}
	return n
}

// report reports that a network of a tenant has changed.
func (c *cloud) report(t *local.Tenant, name string) {
	c.mu.Lock()
	changed := c.changed
	c.mu.Unlock()
	changed(t.Key(), name)
}

// withExternalAddresses leaves the addresses of Services to the provider.
func withExternalAddresses(n *networkv1.Network) {
	n.Spec.Service = &networkv1.ServiceSpec{IPAM: networkv1.IPAMExternal}
}

var _ = Describe("Providers of networks", Ordered, func() {
	var vpc, mizar *cloud
	var red, blue *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		vpc, mizar = newCloud(networkv1.TypeVPC), newCloud("mizar")
		useSyncer(account, func(o *app.Options) {
			o.Networks, o.Patrol = true, 3*time.Second
			o.NetworkProviders = []contract.Registration{vpc.registration(), mizar.registration()}
		})
		// Without these providers, nothing could delete the tenants' networks.
		var tenants []*local.Tenant
		DeferCleanup(func(ctx SpecContext) {
			for _, t := range tenants {
				Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, client.Object(t.VC)).WithTimeout(6 * kit.Soon).
					Should(MatchError(apierrors.IsNotFound, "not found"))
				Expect(vpc.networksOf(t) + mizar.networksOf(t)).To(BeZero())
			}
		})
		red, blue = tenant(ctx), tenant(ctx)
		tenants = []*local.Tenant{red, blue}
	})

	It("make networks, several at once, and give them the address of their DNS service", func(ctx SpecContext) {
		mizar.reply("external", func(context.Context) (contract.State, error) { return contract.State{Ready: true}, nil })
		createNetwork(ctx, red, network("vpc-1", networkv1.TypeVPC, withVPC("vpc-1")))
		createNetwork(ctx, blue, network("vpc-1", networkv1.TypeVPC, withVPC("vpc-1")))
		createNetwork(ctx, red, network("external", "mizar", withExternalAddresses))
		for _, t := range []*local.Tenant{red, blue} {
			n := network("vpc-1", "")
			Eventually(kit.Read(ctx, t.Client, n)).Should(isReady())
			Expect(kit.Get(ctx, t.Client, n)).To(Succeed())
			Expect(vpc.of(t, "vpc-1")).To(Equal(n.UID))
		}
		external := network("external", "")
		Eventually(kit.Read(ctx, red.Client, external)).Should(inPhase(networkv1.PhasePending, networkv1.ReasonNoDNSServiceIP))
		pod := kit.Pod("default", "external", onNetwork("external"))
		kit.Create(ctx, red.Client, pod)
		Eventually(kit.Events(ctx, red, pod, "SyncWaiting")).WithTimeout(2 * kit.Soon).Should(ConsistOf(
			"waiting for Network external to be ready: waiting for the provider to allocate the address of the DNS service"))

		mizar.reply("external", func(context.Context) (contract.State, error) {
			return contract.State{Ready: true, DNSServiceIP: "192.0.2.53"}, nil
		})
		mizar.report(red, "external")
		Eventually(kit.Read(ctx, red.Client, external)).Should(And(isReady(), HaveField("Status.DNSServiceIP", "192.0.2.53")))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, pod))).Should(copiedTo(red, "external"))
	})

	It("fail with a reason, which pods wait with", func(ctx SpecContext) {
		vpc.reply("none", func(context.Context) (contract.State, error) {
			return contract.State{}, &plugins.RejectionError{Reason: "VPCNotFound", Message: "the VPC does not exist"}
		})
		createNetwork(ctx, red, network("none", networkv1.TypeVPC, withVPC("none")))
		Eventually(kit.Read(ctx, red.Client, network("none", ""))).Should(inPhase(networkv1.PhaseFailed, "VPCNotFound"))
		pod := kit.Pod("default", "none", onNetwork("none"))
		kit.Create(ctx, red.Client, pod)
		Eventually(kit.Events(ctx, red, pod, "SyncWaiting")).WithTimeout(2 * kit.Soon).Should(ConsistOf(
			"waiting for Network none to be ready: the VPC does not exist"))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, pod))).To(MatchError(apierrors.IsNotFound, "not found"))
		vpc.reply("none", nil)
		Eventually(kit.Read(ctx, red.Client, network("none", ""))).WithTimeout(2 * kit.Soon).Should(isReady())
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, pod))).Should(copiedTo(red, "none"))
	})

	It("stop no other network when they hang, panic, fail or lie", func(ctx SpecContext) {
		release := make(chan struct{})
		DeferCleanup(func() { close(release) })
		for name, reply := range map[string]func(context.Context) (contract.State, error){
			"hangs":  func(context.Context) (contract.State, error) { <-release; return contract.State{}, nil },
			"panics": func(context.Context) (contract.State, error) { panic("no cloud") },
			"fails": func(context.Context) (contract.State, error) {
				return contract.State{}, errors.New("no route to 192.0.2.1")
			},
			"lies": func(context.Context) (contract.State, error) {
				return contract.State{Ready: true, DNSServiceIP: "127.0.0.1"}, nil
			},
		} {
			mizar.reply(name, reply)
			createNetwork(ctx, red, network(name, "mizar", withExternalAddresses))
		}
		for _, t := range []*local.Tenant{red, blue} {
			createNetwork(ctx, t, network("works", "mizar"))
			Eventually(kit.Read(ctx, t.Client, network("works", ""))).Should(isReady())
		}
		for _, name := range []string{"hangs", "panics", "fails", "lies"} {
			n := network(name, "")
			Eventually(kit.Read(ctx, red.Client, n)).WithTimeout(4*kit.Soon).Should(
				inPhase(networkv1.PhaseUnknown, networkv1.ReasonProviderFailed), name)
			Expect(kit.Get(ctx, red.Client, n)).To(Succeed())
			Expect(n.Status.Conditions[0].Message).NotTo(ContainSubstring("192.0.2.1"))
		}
	})

	It("delete networks when their pods have ended, before the finalizer goes", func(ctx SpecContext) {
		n, pod := network("leaving", networkv1.TypeVPC, withVPC("leaving")), kit.Pod("default", "leaver", onNetwork("leaving"))
		createNetwork(ctx, red, n)
		kit.Create(ctx, red.Client, pod)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, pod))).Should(copiedTo(red, "leaving"))
		vpc.keep("leaving", true)
		Expect(red.Client.Delete(ctx, n)).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, n)).Should(inPhase(networkv1.PhaseTerminating, networkv1.ReasonPodsLeft))
		Consistently(func() types.UID { return vpc.of(red, "leaving") }).Should(Equal(n.UID))
		Expect(red.Client.Delete(ctx, pod)).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, n)).Should(inPhase(networkv1.PhaseTerminating, networkv1.ReasonReleasing))
		restartSyncer()
		Consistently(kit.Read(ctx, red.Client, n)).Should(HaveField("Finalizers", ConsistOf(networkv1.Finalizer)))
		vpc.keep("leaving", false)
		kit.ShouldVanish(ctx, red.Client, n)
		Expect(vpc.of(red, "leaving")).To(BeEmpty())
	})

	It("delete networks whose finalizer the tenant removed, before another has the name", func(ctx SpecContext) {
		n := network("forced", networkv1.TypeVPC, withVPC("forced"))
		createNetwork(ctx, red, n)
		Eventually(kit.Read(ctx, red.Client, n)).Should(isReady())
		Expect(kit.Get(ctx, red.Client, n)).To(Succeed())
		first := n.UID
		vpc.keep("forced", true)
		Expect(red.Client.Delete(ctx, n)).To(Succeed())
		kit.Edit(ctx, red.Client, n, func(n *networkv1.Network) { n.Finalizers = nil })
		kit.ShouldVanish(ctx, red.Client, n)
		createNetwork(ctx, red, network("forced", networkv1.TypeVPC, withVPC("forced")))
		Eventually(kit.Read(ctx, red.Client, n)).Should(inPhase(networkv1.PhasePending, networkv1.ReasonNameTaken))
		Expect(vpc.of(red, "forced")).To(Equal(first))
		vpc.keep("forced", false)
		Eventually(kit.Read(ctx, red.Client, n)).WithTimeout(2 * kit.Soon).Should(isReady())
		Expect(kit.Get(ctx, red.Client, n)).To(Succeed())
		Expect(vpc.of(red, "forced")).To(And(Equal(n.UID), Not(Equal(first))))
	})

	It("delete the networks of a tenant that is deleted", func(ctx SpecContext) {
		gone := tenant(ctx)
		n, pod := network("vpc-1", networkv1.TypeVPC, withVPC("vpc-1")), kit.Pod("default", "web", onNetwork("vpc-1"))
		createNetwork(ctx, gone, n)
		kit.Create(ctx, gone.Client, pod)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(gone, pod))).Should(copiedTo(gone, "vpc-1"))
		vpc.keep("vpc-1", true)
		records := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gone.Key(), Name: names.NetworksSecret}}
		Expect(super.Client.Delete(ctx, gone.VC)).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, records)).WithTimeout(4 * kit.Soon).Should(HaveField("DeletionTimestamp", Not(BeNil())))
		Consistently(func() types.UID { return vpc.of(gone, "vpc-1") }).Should(Equal(n.UID))
		restartSyncer()
		vpc.keep("vpc-1", false)
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.Namespace(gone.Key())).WithTimeout(4 * kit.Soon).
			Should(MatchError(apierrors.IsNotFound, "not found"))
		Expect(vpc.of(gone, "vpc-1")).To(BeEmpty())
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, client.Object(gone.VC)).WithTimeout(4 * kit.Soon).
			Should(MatchError(apierrors.IsNotFound, "not found"))
	})
})

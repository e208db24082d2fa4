package escapes

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	contract "github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// miser is a provider of networks that deletes none while it is closed.
type miser struct {
	closed atomic.Bool

	mu  sync.Mutex
	has map[string]sets.Set[string] // names by tenant
}

// vault provides networks of type vault.
var vault = &miser{has: map[string]sets.Set[string]{}}

func (m *miser) registration() contract.Registration {
	return contract.Registration{Type: "vault", New: func(contract.Environment) (contract.Provider, error) { return m, nil }}
}

func (m *miser) Ensure(_ context.Context, n contract.Network) (contract.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.has[n.Tenant.Key] == nil {
		m.has[n.Tenant.Key] = sets.New[string]()
	}
	m.has[n.Tenant.Key].Insert(n.Name)
	return contract.State{Ready: true}, nil
}

func (m *miser) Delete(_ context.Context, n contract.Network) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return false, nil
	}
	m.has[n.Tenant.Key].Delete(n.Name)
	return true, nil
}

// of returns how many networks it has of a tenant.
func (m *miser) of(t *local.Tenant) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.has[t.Key()])
}

// useNetworks replaces the syncer by one with networks, until the container of
// specs ends.
func useNetworks() {
	GinkgoHelper()
	restart := func(networks bool) {
		Expect(syncer.Stop()).To(Succeed())
		syncer = local.StartSyncer(account, logger, func(o *app.Options) {
			o.Patrol, o.TenantMemory, o.QuotaValidation, o.Networks = patrol, tenantMemory, true, networks
			o.NetworkProviders = []contract.Registration{vault.registration()}
			if networks {
				o.InternalCIDRs = []string{"192.168.0.0/16"}
			}
		})
	}
	restart(true)
	DeferCleanup(func() { restart(false) })
}

// policyOfNetworks is the name of the CRD of networks, and of its policy.
const policyOfNetworks = "networks.arktos.futurewei.com"

// flatNetwork returns a network.
func flatNetwork(name string) *networkv1.Network {
	return &networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkv1.NetworkSpec{Type: networkv1.TypeFlat}}
}

// podOn returns a pod that names a network.
func podOn(name, network string) *corev1.Pod {
	return kit.Pod("default", name, func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, networkv1.Label, network) })
}

// onNetwork matches a copy in a network.
func onNetwork(name string) gomegatypes.GomegaMatcher {
	return HaveField("Labels", HaveKeyWithValue(networkv1.Label, name))
}

// withoutPolicy deletes the policy of networks in a tenant again and again,
// until the returned function is called.
func withoutPolicy(ctx context.Context, t *local.Tenant) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policyOfNetworks}}
			_ = t.Client.Delete(ctx, binding) // the syncer may be slower
			time.Sleep(kit.Poll)
		}
	}()
	return func() { cancel(); <-ended }
}

var _ = Describe("Networks", Ordered, ContinueOnFailure, func() {
	BeforeAll(func() { useNetworks() })

	attack("a status that says a network is ready, without the policy that forbids it", "idea: pods would run on a network that no provider has made",
		func(ctx SpecContext) {
			mallory := tenant(ctx)
			DeferCleanup(withoutPolicy(ctx, mallory))
			vpc := &networkv1.Network{
				ObjectMeta: metav1.ObjectMeta{Name: "stolen"}, Spec: networkv1.NetworkSpec{Type: networkv1.TypeVPC, VPCID: "vpc-of-another"},
			}
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(vpc).Should(Succeed())
			pod := podOn("forger", vpc.Name)
			kit.Create(ctx, mallory.Client, pod)
			Consistently(func() error {
				was := vpc.DeepCopy()
				vpc.Finalizers = []string{networkv1.Finalizer}
				if err := mallory.Client.Patch(ctx, vpc, client.MergeFrom(was)); err != nil {
					return err
				}
				vpc.Status = networkv1.NetworkStatus{Phase: networkv1.PhaseReady, Conditions: []metav1.Condition{
					{Type: networkv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now()},
				}}
				_ = mallory.Client.Status().Patch(ctx, vpc, client.MergeFrom(was)) // the policy may be back
				return client.IgnoreNotFound(kit.Get(ctx, super.Client, kit.SuperOf(mallory, pod)))
			}).Should(Succeed())
			Expect(kit.Get(ctx, super.Client, kit.SuperOf(mallory, pod))).NotTo(Succeed())
			Eventually(kit.Read(ctx, mallory.Client, vpc)).Should(HaveField("Status.Phase", networkv1.PhasePending))
		})

	attack("the label of another network on a running pod, synced down by spec.sync.metadata", "idea: the pod would move past what selects by the label",
		func(ctx SpecContext) {
			mallory := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
				vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{Metadata: []tenancyv1alpha1.MetadataSync{
					{Kinds: []string{"Pod", "Service"}, Labels: []string{"arktos.futurewei.com/"}},
				}}
			})
			DeferCleanup(withoutPolicy(ctx, mallory))
			for _, name := range []string{"own", "secret"} {
				Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(flatNetwork(name)).Should(Succeed())
			}
			pod := podOn("mover", "own")
			kit.Create(ctx, mallory.Client, pod)
			Eventually(kit.Read(ctx, super.Client, kit.SuperOf(mallory, pod))).Should(onNetwork("own"))
			Eventually(func() error {
				was := pod.DeepCopy()
				pod.Labels[networkv1.Label] = "secret"
				return mallory.Client.Patch(ctx, pod, client.MergeFrom(was))
			}).Should(Succeed())
			Consistently(kit.Read(ctx, super.Client, kit.SuperOf(mallory, pod))).Should(onNetwork("own"))
		})

	attack("the API of networks that is deleted in a loop", "idea: the syncer is busy, and other tenants' pods wait", func(ctx SpecContext) {
		mallory, alice := tenant(ctx), tenant(ctx)
		Eventually(kit.Get).WithContext(ctx).WithArguments(mallory.Client, flatNetwork("default")).Should(Succeed())
		restore := withoutPolicy(ctx, mallory)
		deleting, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for deleting.Err() == nil {
				crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: policyOfNetworks}}
				_ = mallory.Client.Delete(deleting, crd) // the syncer may be slower
				time.Sleep(kit.Poll)
			}
		}()
		Eventually(alice.Client.Create).WithContext(ctx).WithArguments(flatNetwork("next")).Should(Succeed())
		pod := podOn("waits", "next")
		kit.Create(ctx, alice.Client, pod)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(alice, pod))).Should(onNetwork("next"))
		cancel()
		<-ended
		restore()
		Eventually(kit.Read(ctx, mallory.Client, flatNetwork("default"))).WithTimeout(4 * kit.Soon).Should(
			HaveField("Status.Phase", networkv1.PhaseReady))
	})

	attack("300 networks, and a pod on the last", "idea: the table of networks grows without a bound", func(ctx SpecContext) {
		mallory := tenant(ctx)
		for i := range 300 {
			n := flatNetwork("many-" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(n).Should(Succeed())
			if i == 299 {
				pod := podOn("last", n.Name)
				kit.Create(ctx, mallory.Client, pod)
				Eventually(kit.Read(ctx, mallory.Client, n)).WithTimeout(2 * kit.Soon).Should(HaveField("Status.Phase", networkv1.PhasePending))
				kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, pod))
			}
		}
	})

	attack("300 networks at a provider, deleted by force one after the other", "idea: what the tenant has at a provider grows without a bound, and stays",
		func(ctx SpecContext) {
			mallory, alice := tenant(ctx), tenant(ctx)
			vault.closed.Store(true)
			for i := range 300 {
				n := &networkv1.Network{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("burnt-%d", i)}, Spec: networkv1.NetworkSpec{Type: "vault"},
				}
				Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(n).Should(Succeed())
				if i%100 == 0 {
					Eventually(kit.Read(ctx, mallory.Client, n)).Should(HaveField("Status.Phase", networkv1.PhaseReady))
				}
				Expect(mallory.Client.Delete(ctx, n)).To(Succeed())
				Eventually(func() error {
					bare := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
					if err := mallory.Client.Patch(ctx, n, bare); err != nil {
						return client.IgnoreNotFound(err)
					}
					return nil
				}).Should(Succeed())
			}
			n := &networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "fine"}, Spec: networkv1.NetworkSpec{Type: "vault"}}
			Eventually(alice.Client.Create).WithContext(ctx).WithArguments(n).Should(Succeed())
			Eventually(kit.Read(ctx, alice.Client, n)).Should(HaveField("Status.Phase", networkv1.PhaseReady))
			Expect(vault.of(mallory)).To(And(BeNumerically(">", 0), BeNumerically("<=", 256)))
			vault.closed.Store(false)
			Eventually(func() int { return vault.of(mallory) }).WithTimeout(4 * kit.Soon).Should(BeZero())
			// A later syncer has no such provider.
			Expect(alice.Client.Delete(ctx, n)).To(Succeed())
			kit.ShouldVanish(ctx, alice.Client, n)
		})
})

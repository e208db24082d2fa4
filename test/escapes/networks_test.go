package escapes

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
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

func (*miser) PreparePod(context.Context, contract.Pod) (contract.Attachment, error) {
	return contract.Attachment{Message: "the vault is closed"}, nil
}

func (*miser) ReleasePod(context.Context, contract.Pod) (bool, error) { return true, nil }

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
		startSyncer(func(o *app.Options) {
			o.Networks = networks
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

	attack("ranges of another tenant's Service addresses, with ServiceCIDRs of its own for them, without the policy that forbids these",
		"idea: the tenant's apiserver would allocate the addresses, and the super cluster lead them to its pods",
		func(ctx SpecContext) {
			mallory, victim := tenant(ctx), tenant(ctx)
			theirs := netip.MustParsePrefix(victim.VC.Status.ServiceCIDR)
			n := flatNetwork("stolen")
			n.Spec.Service = &networkv1.ServiceSpec{CIDRs: []networkv1.CIDR{networkv1.CIDR(theirs.String())}}
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(n).Should(Succeed())
			Eventually(kit.Read(ctx, mallory.Client, n)).Should(HaveField("Status.Conditions", ContainElement(
				HaveField("Reason", networkv1.ReasonServiceRangesOutside))))
			DeferCleanup(withoutPolicy(ctx, mallory))
			Eventually(func() error {
				return mallory.Client.Create(ctx, &networkingv1.ServiceCIDR{
					ObjectMeta: metav1.ObjectMeta{GenerateName: "stolen-", Labels: map[string]string{networkv1.Label: n.Name}},
					Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{theirs.String()}},
				})
			}).WithPolling(5 * time.Millisecond).Should(Succeed())
			for _, address := range []string{"", addresses.In(theirs, addresses.DNS).String()} {
				svc := service("default", "", func(s *corev1.ServiceSpec) { s.ClusterIP = address })
				svc.GenerateName, svc.Labels = "stolen-", map[string]string{networkv1.Label: n.Name}
				_ = mallory.Client.Create(ctx, svc) // its own apiserver may accept it
			}
			Consistently(func(g Gomega) {
				copies := &corev1.ServiceList{}
				g.Expect(super.Client.List(ctx, copies, client.InNamespace(mallory.Super("default")))).To(Succeed())
				for i := range copies.Items {
					address, err := netip.ParseAddr(copies.Items[i].Spec.ClusterIP)
					g.Expect(err != nil || !theirs.Contains(address)).To(BeTrue(), copies.Items[i].Name)
				}
			}).Should(Succeed())
		})

	attack("other endpoints for the apiserver of a network: in its EndpointSlice, in another one, in Endpoints, without the policy that forbids it",
		"requirement NET-13: these are not the tenant's to edit", func(ctx SpecContext) {
			mallory := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
				vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24"}}
			})
			// Without nodes, the platform has made none for the apiserver.
			kit.Create(ctx, mallory.Client, kit.EndpointSlice("default", names.APIService, names.APIService, "192.0.2.1"))
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(flatNetwork("lab")).Should(Succeed())
			platforms := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes-lab"}}
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, platforms))
			own := runningIn(ctx, mallory, "impostor", "lab").Status.PodIP
			Expect(kit.Get(ctx, mallory.Client, platforms)).To(Succeed())
			was := platforms.DeepCopy()
			directed := func() error {
				if err := kit.Get(ctx, mallory.Client, platforms); err != nil {
					return err
				}
				before := platforms.DeepCopy()
				platforms.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{own}}}
				return mallory.Client.Patch(ctx, platforms, client.MergeFrom(before))
			}
			Eventually(directed).Should(MatchError(ContainSubstring("the platform keeps the Services")))

			DeferCleanup(withoutPolicy(ctx, mallory))
			Eventually(directed).Should(Succeed())
			Eventually(kit.Read(ctx, mallory.Client, platforms)).Should(HaveField("Endpoints", Equal(was.Endpoints)))
			forged := kit.EndpointSlice("default", "forged", "kubernetes-lab", own)
			forged.Annotations = map[string]string{names.NetworkService: names.APIService}
			byHand := &corev1.Endpoints{ //nolint:staticcheck // old clients write it
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes-lab"},
				Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: own}}}}, //nolint:staticcheck // see above
			}
			plain := kit.EndpointSlice("default", "plain", "kubernetes-lab", own)
			kit.Create(ctx, mallory.Client, byHand, plain)
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(forged).Should(Succeed())
			Eventually(kit.Rejections(ctx, mallory, plain)).Should(ContainElement(ContainSubstring("the platform keeps the endpoints of Service kubernetes-lab")))
			Consistently(func(g Gomega) {
				slices := &discoveryv1.EndpointSliceList{}
				g.Expect(super.Client.List(ctx, slices, client.InNamespace(mallory.Super("default")),
					client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes-lab"})).To(Succeed())
				for i := range slices.Items {
					g.Expect(slices.Items[i].Endpoints).NotTo(ContainElement(HaveField("Addresses", ContainElement(own))), slices.Items[i].Name)
				}
			}).Should(Succeed())
			kit.ShouldVanish(ctx, mallory.Client, forged)
			kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, byHand))
		})

	attack("the name of a network's Service, before the network, and with the mark of the platform", "idea: the tenant's own Service is taken over, or the platform's",
		func(ctx SpecContext) {
			mallory := tenant(ctx)
			taken := service("default", "kubernetes-lab")
			kit.Create(ctx, mallory.Client, taken)
			n := flatNetwork("lab")
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(n).Should(Succeed())
			Eventually(kit.Read(ctx, mallory.Client, n)).Should(And(
				HaveField("Status.Phase", networkv1.PhaseReady),
				HaveField("Status.Conditions", ContainElement(HaveField("Reason", networkv1.ReasonServiceNameTaken)))))
			Expect(kit.Read(ctx, mallory.Client, taken)()).To(HaveField("Spec.Ports", taken.Spec.Ports))
			marked := service("kube-system", "kube-dns-lab")
			marked.Annotations = map[string]string{names.NetworkService: names.DNSService}
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(marked).Should(
				MatchError(ContainSubstring("the platform keeps the Services")))
			copied := kit.SuperOf(mallory, taken)
			kit.ShouldExist(ctx, super.Client, copied)
			Expect(copied.Labels).NotTo(HaveKey(names.NetworkService))
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

	attack("annotations and a gate of a pod that say that it is prepared, synced down by spec.sync.metadata",
		"idea: the pod would start on a network that its provider has not prepared, with arguments of the tenant's for the CNI plugin",
		func(ctx SpecContext) {
			mallory := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
				vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{Metadata: []tenancyv1alpha1.MetadataSync{
					{Kinds: []string{"Pod"}, Annotations: []string{"arktos.futurewei.com/"}},
				}}
			})
			n := &networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "closed"}, Spec: networkv1.NetworkSpec{Type: "vault"}}
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(n).Should(Succeed())
			forged := map[string]string{networkv1.ReadinessAnnotation: "true", networkv1.CNIArgsAnnotation: "ip=192.0.2.1"}
			pod := podOn("forger", n.Name)
			pod.Annotations, pod.Spec.SchedulingGates = forged, []corev1.PodSchedulingGate{{Name: networkv1.ReadinessGate}}
			kit.Create(ctx, mallory.Client, pod)
			copied := kit.SuperOf(mallory, pod)
			heldBack := And(
				HaveField("Annotations", And(HaveKeyWithValue(networkv1.ReadinessAnnotation, "false"), Not(HaveKey(networkv1.CNIArgsAnnotation)))),
				HaveField("Spec.SchedulingGates", ConsistOf(HaveField("Name", networkv1.ReadinessGate))), HaveField("Spec.NodeName", BeEmpty()))
			kit.ShouldStayAbsent(ctx, super.Client, copied)
			kit.Edit(ctx, mallory.Client, pod, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
			Eventually(kit.Read(ctx, super.Client, copied)).Should(heldBack)
			kit.Edit(ctx, mallory.Client, pod, func(p *corev1.Pod) {
				p.Annotations = map[string]string{networkv1.ReadinessAnnotation: "true", networkv1.CNIArgsAnnotation: "ip=192.0.2.2"}
			})
			Consistently(kit.Read(ctx, super.Client, copied)).Should(heldBack)
			Expect(mallory.Client.Delete(ctx, pod)).To(Succeed())
			kit.ShouldVanish(ctx, mallory.Client, pod)
			Expect(mallory.Client.Delete(ctx, n)).To(Succeed())
			kit.ShouldVanish(ctx, mallory.Client, n)
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

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
	contract "github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// isGated matches a copy that its provider has not prepared.
func isGated() gomegatypes.GomegaMatcher {
	return And(
		HaveField("Annotations", HaveKeyWithValue(networkv1.ReadinessAnnotation, "false")),
		HaveField("Annotations", Not(HaveKey(networkv1.CNIArgsAnnotation))),
		HaveField("Spec.SchedulingGates", ContainElement(HaveField("Name", networkv1.ReadinessGate))),
		HaveField("Finalizers", ContainElement(networkv1.Finalizer)))
}

// prepared matches a copy that its provider has prepared.
func prepared(args string) gomegatypes.GomegaMatcher {
	return And(
		HaveField("Annotations", And(
			HaveKeyWithValue(networkv1.ReadinessAnnotation, "true"), HaveKeyWithValue(networkv1.CNIArgsAnnotation, args))),
		HaveField("Spec.SchedulingGates", BeEmpty()),
		HaveField("Finalizers", ContainElement(networkv1.Finalizer)))
}

// withNIC sets what a pod asks of its network.
func withNIC(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, networkv1.NICAnnotation, text) }
}

// says matches a pod that is not scheduled, for a reason.
func says(message string) gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(
		HaveField("Type", corev1.PodScheduled), HaveField("Status", corev1.ConditionFalse), HaveField("Message", ContainSubstring(message)))))
}

var _ = Describe("Pods of networks with a provider", Ordered, func() {
	var vpc *cloud
	var red *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		vpc = newCloud(networkv1.TypeVPC)
		useSyncer(account, func(o *app.Options) {
			o.Networks, o.Patrol = true, 3*time.Second
			o.NetworkProviders = []contract.Registration{vpc.registration()}
		})
		awaitRemoval(&red)
		red = tenant(ctx)
		createNetwork(ctx, red, network("vpc-1", networkv1.TypeVPC, withVPC("vpc-1")))
		Eventually(kit.Read(ctx, red.Client, network("vpc-1", ""))).Should(isReady())
	})

	It("start when it has prepared them, with what it has for the CNI plugin", func(ctx SpecContext) {
		vpc.prepare("web", func(contract.Pod) (contract.Attachment, error) {
			return contract.Attachment{Message: "allotting a port"}, nil
		})
		pod := kit.Pod("default", "web", onNetwork("vpc-1"), withNIC(`{"name": "eth0", "subnet": "192.0.2.0/24", "ip": "192.0.2.7"}`))
		kit.Create(ctx, red.Client, pod)
		copied := kit.SuperOf(red, pod)
		Eventually(kit.Read(ctx, super.Client, copied)).Should(isGated())
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		Expect(copied.Annotations).To(HaveKeyWithValue(networkv1.NICAnnotation, MatchJSON(`{"name": "eth0", "subnet": "192.0.2.0/24", "ip": "192.0.2.7"}`)))
		Eventually(kit.Read(ctx, red.Client, pod)).Should(says("the network is being prepared: allotting a port"))
		Consistently(kit.Read(ctx, super.Client, copied)).Should(And(isGated(), HaveField("Spec.NodeName", BeEmpty())))

		By("outliving the syncer")
		restartSyncer()
		vpc.prepare("web", func(p contract.Pod) (contract.Attachment, error) {
			return contract.Attachment{Ready: true, CNIArgs: "ip=" + p.NIC.IP}, nil
		})
		Eventually(kit.Read(ctx, super.Client, copied)).WithTimeout(2 * kit.Soon).Should(prepared("ip=192.0.2.7"))
		Eventually(kit.Read(ctx, red.Client, pod)).Should(HaveField("Spec.NodeName", Not(BeEmpty())))
	})

	It("wait with the reason when it rejects them", func(ctx SpecContext) {
		vpc.prepare("taken", func(contract.Pod) (contract.Attachment, error) {
			return contract.Attachment{}, &plugins.RejectionError{Reason: "AddressTaken", Message: "192.0.2.7 is taken"}
		})
		pod := kit.Pod("default", "taken", onNetwork("vpc-1"))
		kit.Create(ctx, red.Client, pod)
		Eventually(kit.Read(ctx, red.Client, pod)).Should(says("the network rejects the pod: 192.0.2.7 is taken"))
		Expect(kit.Read(ctx, super.Client, kit.SuperOf(red, pod))()).To(isGated())
	})

	It("stop no other pod when it hangs or panics for one", func(ctx SpecContext) {
		release := make(chan struct{})
		DeferCleanup(func() { close(release) })
		vpc.prepare("hangs", func(contract.Pod) (contract.Attachment, error) { <-release; return contract.Attachment{}, nil })
		vpc.prepare("panics", func(contract.Pod) (contract.Attachment, error) { panic("no cloud") })
		for _, name := range []string{"hangs", "panics", "works"} {
			kit.Create(ctx, red.Client, kit.Pod("default", name, onNetwork("vpc-1")))
		}
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, kit.Pod("default", "works")))).Should(prepared("port-of-works"))
		Eventually(kit.Read(ctx, red.Client, kit.Pod("default", "panics"))).Should(says("the provider of the network does not work"))
		Expect(kit.Read(ctx, super.Client, kit.SuperOf(red, kit.Pod("default", "hangs")))()).To(isGated())
	})

	It("are released when they have ended, before they vanish", func(ctx SpecContext) {
		pod := kit.Pod("default", "ends", onNetwork("vpc-1"))
		kit.Create(ctx, red.Client, pod)
		copied := kit.SuperOf(red, pod)
		Eventually(kit.Read(ctx, super.Client, copied)).Should(prepared("port-of-ends"))
		// A pod that has no node yet vanishes from the tenant at once, and its copy later.
		Eventually(kit.Read(ctx, red.Client, pod)).Should(HaveField("Status.Phase", corev1.PodRunning))
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		vpc.keep("ends", true)
		Expect(red.Client.Delete(ctx, pod)).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, copied)).WithTimeout(2 * kit.Soon).Should(HaveField("DeletionGracePeriodSeconds", HaveValue(BeZero())))
		restartSyncer()
		Consistently(kit.Read(ctx, super.Client, copied)).Should(HaveField("Finalizers", ContainElement(networkv1.Finalizer)))
		Expect(vpc.attends(copied)).To(BeTrue())
		vpc.keep("ends", false)
		Eventually(kit.Get).WithContext(ctx).WithArguments(red.Client, pod).WithTimeout(2 * kit.Soon).Should(MatchError(apierrors.IsNotFound, "not found"))
		Expect(vpc.attends(copied)).To(BeFalse())
	})

	It("use their network until they are released, also when they have completed", func(ctx SpecContext) {
		n, pod := network("busy", networkv1.TypeVPC, withVPC("busy")), kit.Pod("default", "completes", onNetwork("busy"))
		createNetwork(ctx, red, n)
		vpc.keep("completes", true)
		kit.Create(ctx, red.Client, pod)
		copied := kit.SuperOf(red, pod)
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Status.Phase", corev1.PodRunning))
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) { s.Phase = corev1.PodSucceeded })
		Expect(red.Client.Delete(ctx, n)).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, n)).Should(inPhase(networkv1.PhaseTerminating, networkv1.ReasonPodsLeft))
		Consistently(vpc.of).WithArguments(red, "busy").ShouldNot(BeEmpty())
		vpc.keep("completes", false)
		kit.ShouldVanish(ctx, red.Client, n)
		Expect(vpc.attends(copied)).To(BeFalse())
		Expect(vpc.of(red, "busy")).To(BeEmpty())
	})

	It("are released when their network was deleted by force", func(ctx SpecContext) {
		n, pod := network("forced", networkv1.TypeVPC, withVPC("forced")), kit.Pod("default", "survives", onNetwork("forced"))
		createNetwork(ctx, red, n)
		kit.Create(ctx, red.Client, pod)
		copied := kit.SuperOf(red, pod)
		Eventually(kit.Read(ctx, super.Client, copied)).Should(prepared("port-of-survives"))
		Eventually(kit.Read(ctx, red.Client, pod)).Should(HaveField("Status.Phase", corev1.PodRunning))
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		Expect(red.Client.Delete(ctx, n)).To(Succeed())
		kit.Edit(ctx, red.Client, n, func(n *networkv1.Network) { n.Finalizers = nil })
		kit.ShouldVanish(ctx, red.Client, n)
		restartSyncer()
		Expect(vpc.attends(copied)).To(BeTrue())
		Expect(red.Client.Delete(ctx, pod)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, pod)
		kit.ShouldVanish(ctx, super.Client, copied)
		Expect(vpc.attends(copied)).To(BeFalse())
		Eventually(vpc.of).WithArguments(red, "forced").WithTimeout(2 * kit.Soon).Should(BeEmpty())
	})

	It("need nothing on flat networks, whatever they ask for", func(ctx SpecContext) {
		pod := kit.Pod("default", "flat", withNIC("no JSON"))
		kit.Create(ctx, red.Client, pod)
		copied := kit.SuperOf(red, pod)
		Eventually(kit.Read(ctx, super.Client, copied)).Should(copiedTo(red, "default"))
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		Expect(copied.Finalizers).To(BeEmpty())
		Expect(copied.Spec.SchedulingGates).To(BeEmpty())
		Expect(copied.Annotations).NotTo(HaveKey(networkv1.NICAnnotation))
	})

	DescribeTable("are rejected", func(ctx SpecContext, name, nic, because string) {
		pod := kit.Pod("default", name, onNetwork("vpc-1"), withNIC(nic))
		kit.Create(ctx, red.Client, pod)
		Eventually(kit.Events(ctx, red, pod, "SyncRejected")).WithTimeout(2 * kit.Soon).Should(ContainElement(ContainSubstring(because)))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, pod))).To(MatchError(apierrors.IsNotFound, "not found"))
	},
		Entry("with a NIC that is no JSON", "bad-json", "eth0", "one JSON object"),
		Entry("with an address outside its subnet", "bad-ip", `{"subnet": "192.0.2.0/24", "ip": "198.51.100.7"}`, "ip must be an address of the subnet"),
	)
})

// awaitRemoval waits at the end of a container of specs until a tenant is gone:
// without its providers, nothing could delete its networks.
func awaitRemoval(tenants ...**local.Tenant) {
	GinkgoHelper()
	DeferCleanup(func(ctx context.Context) {
		for _, t := range tenants {
			Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, (*t).VC).WithTimeout(6 * kit.Soon).
				Should(MatchError(apierrors.IsNotFound, "not found"))
		}
	})
}

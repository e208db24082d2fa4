package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// opening sets what a network opens outside.
func opening(kind networkv1.EgressType, ranges ...networkv1.CIDR) func(*networkv1.Network) {
	return func(n *networkv1.Network) { n.Spec.Egress = &networkv1.Egress{Type: kind, CIDRs: ranges} }
}

// policiesIn returns the names of the NetworkPolicies in a tenant's namespace of
// the super cluster.
func policiesIn(t *local.Tenant, ns string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		list := &networkingv1.NetworkPolicyList{}
		err := super.Client.List(ctx, list, client.InNamespace(t.Super(ns)))
		var found []string
		for i := range list.Items {
			found = append(found, list.Items[i].Name)
		}
		return found, err
	}
}

// egressOf returns the syncer's policy for the egress of a network in a tenant's
// namespace.
func egressOf(t *local.Tenant, ns, network string) *networkingv1.NetworkPolicy {
	return own(t, ns, network+names.NetworkEgressPolicy)
}

// opens matches a policy by the blocks of addresses in its rules for egress.
func opens(cidrs ...string) gomegatypes.GomegaMatcher {
	return WithTransform(func(p *networkingv1.NetworkPolicy) []string {
		found := []string{}
		for _, rule := range p.Spec.Egress {
			for _, peer := range rule.To {
				if peer.IPBlock != nil && len(rule.Ports) == 0 { // others are the apiserver's
					found = append(found, peer.IPBlock.CIDR)
				}
			}
		}
		return found
	}, ConsistOf(cidrs))
}

// inNetwork matches a selector that selects pods of a network only.
func inNetwork(name string) gomegatypes.GomegaMatcher {
	return HaveField("MatchExpressions", ContainElement(And(
		HaveField("Key", networkv1.Label), HaveField("Operator", metav1.LabelSelectorOpIn), HaveField("Values", ConsistOf(name)))))
}

// egressPolicy returns a tenant's policy of a network with a rule for egress.
func egressPolicy(ns, name, network string, to ...networkingv1.NetworkPolicyPeer) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{networkv1.Label: network}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{To: to}},
		},
	}
}

var _ = Describe("Networks that are kept apart", Ordered, func() {
	const ns, elsewhere = "apart", "elsewhere"
	// always are the policies in each namespace of a tenant with networks.
	always := []string{names.IsolationPolicy, names.DefaultPolicy, names.EgressPolicy}
	var red *local.Tenant

	networked := func(o *app.Options) {
		o.Networks, o.Patrol, o.InternalCIDRs = true, 3*time.Second, []string{"192.168.0.0/16"}
	}
	// with adds the policies of networks to those of each namespace.
	with := func(networks ...string) []string {
		all := append([]string{}, always...)
		for _, name := range networks {
			all = append(all, name+names.NetworkEgressPolicy)
		}
		return all
	}

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account, networked)
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns), kit.Namespace(elsewhere))
		createNetwork(ctx, red, network("front", networkv1.TypeFlat, opening(networkv1.EgressNone)))
		createNetwork(ctx, red, network("back", networkv1.TypeFlat))
	})

	It("have a policy in each namespace where they have pods, before the first of these", func(ctx SpecContext) {
		for _, in := range []string{ns, elsewhere} {
			Eventually(policiesIn(red, in)).WithContext(ctx).Should(ConsistOf(always))
		}
		first := kit.Pod(ns, "first", onNetwork("front"))
		kit.Create(ctx, red.Client, first)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, first))
		Expect(policiesIn(red, ns)(ctx)).To(ConsistOf(with("front")))
		for _, name := range with("front") {
			made, err := resourceversion.CompareResourceVersion(
				must(kit.Read(ctx, super.Client, own(red, ns, name))()).ResourceVersion, must(kit.Read(ctx, super.Client, kit.SuperOf(red, first))()).ResourceVersion)
			Expect(err).NotTo(HaveOccurred())
			Expect(made).To(Equal(-1), "%s is older than the pod", name)
		}
		for i := range 5 {
			more := kit.Pod(ns, fmt.Sprint("more-", i), onNetwork("front"))
			kit.Create(ctx, red.Client, more)
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, more))
		}
		plain := kit.Pod(ns, "plain")
		kit.Create(ctx, red.Client, plain)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, plain))
		Expect(policiesIn(red, ns)(ctx)).To(ConsistOf(with("front", "default")))
		Expect(policiesIn(red, elsewhere)(ctx)).To(ConsistOf(always))
	})

	It("open what spec.egress says", func(ctx SpecContext) {
		policy := egressOf(red, ns, "front")
		Expect(kit.Read(ctx, super.Client, policy)()).To(And(opens(), HaveField("Spec.PodSelector", inNetwork("front"))))
		Expect(kit.Read(ctx, super.Client, egressOf(red, ns, "default"))()).To(opens("0.0.0.0/0"))
		kit.Edit(ctx, red.Client, network("front", ""), opening(networkv1.EgressCIDRs, "198.51.100.0/24", "10.128.7.0/24", "192.168.1.0/24"))
		Eventually(kit.Read(ctx, super.Client, policy)).Should(opens("198.51.100.0/24"))
		kit.Edit(ctx, red.Client, network("front", ""), opening(networkv1.EgressAll))
		Eventually(kit.Read(ctx, super.Client, policy)).Should(opens("0.0.0.0/0"))
		Expect(kit.Read(ctx, super.Client, policy)()).To(HaveField("Spec.Egress", ContainElement(HaveField("To", ContainElement(
			HaveField("IPBlock", HaveValue(HaveField("Except", ContainElements("10.128.0.0/9", "192.168.0.0/16", "169.254.0.0/16")))))))))
		kit.Edit(ctx, red.Client, network("front", ""), opening(networkv1.EgressNone))
		Eventually(kit.Read(ctx, super.Client, policy)).Should(opens())
	})

	It("are closed again after another client has changed or deleted a policy, or removed its labels", func(ctx SpecContext) {
		policy, closed := egressOf(red, ns, "front"), own(red, ns, names.EgressPolicy)
		kit.Edit(ctx, super.Client, policy.DeepCopy(), func(p *networkingv1.NetworkPolicy) {
			p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
		})
		Eventually(kit.Read(ctx, super.Client, policy)).Should(HaveField("Spec.Egress", Not(ContainElement(HaveField("To", BeEmpty())))))
		for _, p := range []*networkingv1.NetworkPolicy{policy, closed} {
			was := must(kit.Read(ctx, super.Client, p)())
			Expect(super.Client.Delete(ctx, p.DeepCopy())).To(Succeed())
			Eventually(kit.Read(ctx, super.Client, p)).Should(And(HaveField("UID", Not(Equal(was.UID))), HaveField("Spec", Equal(was.Spec))))
			kit.Edit(ctx, super.Client, p.DeepCopy(), func(p *networkingv1.NetworkPolicy) {
				p.Labels, p.Spec.Egress = nil, []networkingv1.NetworkPolicyEgressRule{{}}
			})
			Eventually(kit.Read(ctx, super.Client, p)).Should(HaveField("Spec", Equal(was.Spec)))
		}
	})

	It("bound the tenant's policies, and mark the pods that these select", func(ctx SpecContext) {
		web := kit.Pod(ns, "web", onNetwork("front"))
		web.Labels["app"] = "web"
		other := kit.Pod(ns, "web-of-back", onNetwork("back"))
		other.Labels["app"] = "web"
		kit.Create(ctx, red.Client, web, other)
		isMarked := func(p *corev1.Pod) func() (bool, error) {
			return func() (bool, error) {
				copied, err := kit.Read(ctx, super.Client, kit.SuperOf(red, p))()
				_, marked := copied.Labels[names.OwnEgress]
				return marked, err
			}
		}
		for _, p := range []*corev1.Pod{web, other} {
			Eventually(isMarked(p)).Should(BeFalse())
		}
		theirs := egressPolicy(ns, "web", "front")
		kit.Create(ctx, red.Client, theirs)
		copied := kit.SuperOf(red, theirs)
		Eventually(kit.Read(ctx, super.Client, copied)).Should(And(opens(), HaveField("Spec.PodSelector", inNetwork("front"))))
		Expect(kit.Read(ctx, super.Client, copied)()).To(HaveField("Spec.Egress", ContainElement(
			HaveField("To", ConsistOf(HaveField("PodSelector", HaveValue(inNetwork("front"))))))))
		for _, p := range []*corev1.Pod{web, other} {
			Eventually(isMarked(p)).Should(BeTrue(), "in whichever network it is, a policy isolates a pod that it selects")
		}

		By("following the network")
		kit.Edit(ctx, red.Client, network("front", ""), opening(networkv1.EgressCIDRs, "198.51.100.0/24"))
		Eventually(kit.Read(ctx, super.Client, copied)).Should(opens("198.51.100.0/24"))
		kit.Edit(ctx, red.Client, theirs, func(p *networkingv1.NetworkPolicy) { p.Labels[networkv1.Label] = "back" })
		Eventually(kit.Read(ctx, super.Client, copied)).Should(And(opens("0.0.0.0/0"), HaveField("Spec.PodSelector", inNetwork("back"))))
		kit.Edit(ctx, red.Client, theirs, func(p *networkingv1.NetworkPolicy) { p.Labels[networkv1.Label] = "none" })
		Eventually(kit.Read(ctx, super.Client, copied)).Should(And(opens(), HaveField("Spec.PodSelector", inNetwork("none"))))

		Expect(red.Client.Delete(ctx, theirs)).To(Succeed())
		for _, p := range []*corev1.Pod{web, other} {
			Eventually(isMarked(p)).Should(BeFalse())
		}
	})

	It("leave nothing in the super cluster when they are deleted, and everything while they have pods", func(ctx SpecContext) {
		createNetwork(ctx, red, network("leaving", networkv1.TypeFlat))
		pods := []*corev1.Pod{kit.Pod(ns, "leaves", onNetwork("leaving")), kit.Pod(elsewhere, "leaves", onNetwork("leaving"))}
		for _, p := range pods {
			kit.Create(ctx, red.Client, p)
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, p))
		}
		policies := []*networkingv1.NetworkPolicy{egressOf(red, ns, "leaving"), egressOf(red, elsewhere, "leaving")}
		n := network("leaving", "")
		Expect(red.Client.Delete(ctx, n)).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, n)).Should(inPhase(networkv1.PhaseTerminating, networkv1.ReasonPodsLeft))
		Expect(red.Client.Delete(ctx, pods[0])).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, pods[0]))
		restartSyncer()
		for _, p := range policies {
			Consistently(kit.Get).WithContext(ctx).WithTimeout(kit.Quiet/2).WithArguments(super.Client, p).Should(Succeed())
		}
		Expect(red.Client.Delete(ctx, pods[1])).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, n)
		for _, p := range policies {
			Expect(kit.Get(ctx, super.Client, p)).To(MatchError(apierrors.IsNotFound, "not found"), "before the network is gone")
		}
		Consistently(policiesIn(red, elsewhere)).WithContext(ctx).Should(ConsistOf(always))
	})

	It("leave nothing when the tenant has removed their finalizer", func(ctx SpecContext) {
		createNetwork(ctx, red, network("torn", networkv1.TypeFlat))
		pod := kit.Pod(elsewhere, "torn", onNetwork("torn"))
		kit.Create(ctx, red.Client, pod)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, pod))
		n, policy := network("torn", ""), egressOf(red, elsewhere, "torn")
		Expect(red.Client.Delete(ctx, n)).To(Succeed())
		kit.Edit(ctx, red.Client, n, func(n *networkv1.Network) { n.Finalizers = nil })
		kit.ShouldVanish(ctx, red.Client, n)
		Consistently(kit.Get).WithContext(ctx).WithArguments(super.Client, policy).Should(Succeed(), "its pod is still there")
		Expect(red.Client.Delete(ctx, pod)).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, policy)
	})

	DescribeTable("reject", func(ctx SpecContext, egress networkv1.Egress, because string) {
		n := network("bad", networkv1.TypeFlat)
		n.Spec.Egress = &egress
		Eventually(red.Client.Create).WithContext(ctx).WithArguments(n).Should(MatchError(ContainSubstring(because)))
	},
		Entry("an egress without a type", networkv1.Egress{}, "spec.egress.type"),
		Entry("an egress of another type", networkv1.Egress{Type: "Some"}, "spec.egress.type"),
		Entry("ranges that are missing", networkv1.Egress{Type: networkv1.EgressCIDRs}, "cidrs is required if type is CIDRs"),
		Entry("ranges without their type", networkv1.Egress{Type: networkv1.EgressAll, CIDRs: []networkv1.CIDR{"10.0.0.0/8"}}, "and forbidden otherwise"),
		Entry("a range that is none", networkv1.Egress{Type: networkv1.EgressCIDRs, CIDRs: []networkv1.CIDR{"10.0.0.1"}}, "CIDR notation"),
		Entry("a range with host bits", networkv1.Egress{Type: networkv1.EgressCIDRs, CIDRs: []networkv1.CIDR{"10.0.0.1/8"}}, "host bits"),
		Entry("a range twice", networkv1.Egress{Type: networkv1.EgressCIDRs, CIDRs: []networkv1.CIDR{"10.0.0.0/8", "10.0.0.0/8"}}, "Duplicate value"),
		Entry("33 ranges", networkv1.Egress{Type: networkv1.EgressCIDRs, CIDRs: manyRanges(33)}, "must have at most 32 items"),
	)

	It("are apart no more without --networks, and their policies are deleted", func(ctx SpecContext) {
		useSyncer(account)
		for _, in := range []string{ns, elsewhere} {
			Eventually(policiesIn(red, in)).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(ConsistOf(names.IsolationPolicy, names.DefaultPolicy))
		}
		useSyncer(account, networked)
		Eventually(policiesIn(red, ns)).WithContext(ctx).WithTimeout(2*kit.Soon).Should(ContainElements(with("default")), "where pods are then")
	})
})

// manyRanges returns a number of ranges.
func manyRanges(number int) []networkv1.CIDR {
	ranges := make([]networkv1.CIDR, number)
	for i := range ranges {
		ranges[i] = networkv1.CIDR(fmt.Sprintf("10.%d.0.0/16", i))
	}
	return ranges
}

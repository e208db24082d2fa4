package escapes

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// metadataAddress is where clouds serve credentials.
const metadataAddress = "169.254.169.254"

// netPolicy returns a policy about all pods of the default namespace, of a
// network.
func netPolicy(name, network string, to ...networkingv1.NetworkPolicyPeer) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{networkv1.Label: network}},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{}},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{To: to}},
		},
	}
}

// closedNetwork returns a network that opens nothing outside.
func closedNetwork(name string) *networkv1.Network {
	n := flatNetwork(name)
	n.Spec.Egress = &networkv1.Egress{Type: networkv1.EgressNone}
	return n
}

// peers returns a peer for everything that a tenant can name.
func peers(of string, addresses ...string) []networkingv1.NetworkPolicyPeer {
	all := []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{}},
		{PodSelector: &metav1.LabelSelector{}},
		{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{networkv1.Label: of}}},
		{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{networkv1.Label: of}}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}},
	}
	for _, address := range addresses {
		all = append(all, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: address + "/32"}})
	}
	return all
}

// runningIn creates a pod in a network, and returns its copy when it has an
// address.
func runningIn(ctx context.Context, t *local.Tenant, name, network string) *corev1.Pod {
	GinkgoHelper()
	pod := podOn(name, network)
	kit.Create(ctx, t.Client, pod)
	copied := kit.SuperOf(t, pod)
	Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Status.PodIP", Not(BeEmpty())))
	Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
	return copied
}

// reaches returns a function that reports whether a pod reaches another one.
func reaches(ctx context.Context, from, to *corev1.Pod) func() (bool, error) {
	return func() (bool, error) {
		for _, pod := range []*corev1.Pod{from, to} { // their labels change
			if err := kit.Get(ctx, super.Client, pod); err != nil {
				return false, err
			}
		}
		return kit.Reaches(ctx, super.Client, from, to)
	}
}

// reachesAny returns a function that returns the addresses that a pod reaches.
func reachesAny(ctx context.Context, from *corev1.Pod, addresses ...string) func() ([]string, error) {
	return func() ([]string, error) {
		reached := []string{}
		if err := kit.Get(ctx, super.Client, from); err != nil {
			return nil, err
		}
		for _, address := range addresses {
			is, err := kit.ReachesAddress(ctx, super.Client, from, address)
			if err != nil {
				return nil, err
			}
			if is {
				reached = append(reached, address)
			}
		}
		return reached, nil
	}
}

var _ = Describe("Networks that are kept apart", Ordered, ContinueOnFailure, func() {
	BeforeAll(func() { useNetworks() })

	attack("policies of both networks that allow each other's pods, by every kind of peer", "policies only add to each other: a tenant's own could open a network",
		func(ctx SpecContext) {
			mallory := tenant(ctx)
			for _, name := range []string{"near", "far"} {
				Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(flatNetwork(name)).Should(Succeed())
			}
			near, beside, far := runningIn(ctx, mallory, "near", "near"), runningIn(ctx, mallory, "beside", "near"), runningIn(ctx, mallory, "far", "far")
			Expect(reaches(ctx, near, beside)()).To(BeTrue())
			Expect(reaches(ctx, near, far)()).To(BeFalse())
			kit.Edit(ctx, mallory.Client, kit.Namespace("default"), func(ns *corev1.Namespace) {
				metav1.SetMetaDataLabel(&ns.ObjectMeta, networkv1.Label, "far")
			})
			var policies []*networkingv1.NetworkPolicy
			for _, of := range []string{"near", "far", "", "none"} {
				named := netPolicy("all-of-"+of+"x", of)
				listed := netPolicy("each-of-"+of+"x", of, peers("far", near.Status.PodIP, far.Status.PodIP)...)
				policies = append(policies, named, listed)
			}
			for _, p := range policies {
				if p.Labels[networkv1.Label] == "" {
					p.Labels = nil
				}
				kit.Create(ctx, mallory.Client, p)
			}
			for _, p := range policies {
				kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, p))
			}
			Eventually(kit.Read(ctx, super.Client, near)).Should(HaveField("Labels", HaveKey(names.OwnEgress)), "the policies have an effect")
			for _, pair := range [][]*corev1.Pod{{near, far}, {far, near}, {beside, far}} {
				Consistently(reaches(ctx, pair[0], pair[1])).Should(BeFalse())
			}
			Expect(reaches(ctx, near, beside)()).To(BeTrue())
		})

	attack("a policy that allows all egress, in a network whose spec.egress is nothing", "policies only add to each other", func(ctx SpecContext) {
		mallory := tenant(ctx)
		Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(closedNetwork("closed")).Should(Succeed())
		pod := runningIn(ctx, mallory, "wants-out", "closed")
		targets := []string{"198.51.100.7", metadataAddress, "192.168.1.1", "10.128.0.99"}
		Expect(reachesAny(ctx, pod, targets...)()).To(BeEmpty())
		for name, p := range map[string]*networkingv1.NetworkPolicy{"all": netPolicy("all", "closed"), "each": netPolicy("each", "closed", peers("closed", targets...)...)} {
			kit.Create(ctx, mallory.Client, p)
			Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(mallory, p)).Should(Succeed(), name)
		}
		Eventually(kit.Read(ctx, super.Client, pod)).Should(HaveField("Labels", HaveKey(names.OwnEgress)), "the policies have an effect")
		Consistently(reachesAny(ctx, pod, targets...)).Should(BeEmpty())

		By("giving the policy the label of a network that opens everything")
		Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(flatNetwork("open")).Should(Succeed())
		other := runningIn(ctx, mallory, "is-out", "open")
		kit.Create(ctx, mallory.Client, netPolicy("of-another", "open"))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, netPolicy("of-another", "open")))
		Eventually(reachesAny(ctx, other, targets...)).Should(ConsistOf(targets[0]), "and never what is the platform's")
		Consistently(reachesAny(ctx, pod, targets...)).Should(BeEmpty())
	})

	attack("ranges in spec.egress that have nodes, pods, the metadata of clouds, and one of them in another notation", "the breach of Capital One in 2019: credentials at 169.254.169.254",
		func(ctx SpecContext) {
			mallory := tenant(ctx)
			n := flatNetwork("wide")
			n.Spec.Egress = &networkv1.Egress{Type: networkv1.EgressCIDRs, CIDRs: []networkv1.CIDR{
				"198.51.100.0/24", "192.168.1.0/24", "10.128.0.0/9", "10.0.0.0/8", "169.254.169.254/32", "169.254.0.0/15", "::/0", "fd00:ec2::254/128",
			}}
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(n).Should(Succeed())
			pod := runningIn(ctx, mallory, "wide", "wide")
			Expect(reachesAny(ctx, pod, "198.51.100.7", "10.0.0.7", metadataAddress, "192.168.1.1", "10.128.0.99", "fd00:ec2::254")()).To(
				ConsistOf("198.51.100.7", "10.0.0.7"))
		})

	attack("a network of another tenant's name, and policies for its pods", "idea: the name of a network is unique in a tenant alone", func(ctx SpecContext) {
		mallory, alice := tenant(ctx), tenant(ctx)
		pods := map[*local.Tenant]*corev1.Pod{}
		for _, t := range []*local.Tenant{mallory, alice} {
			Eventually(t.Client.Create).WithContext(ctx).WithArguments(flatNetwork("same")).Should(Succeed())
			pods[t] = runningIn(ctx, t, "member", "same")
		}
		p := netPolicy("theirs", "same", peers("same", pods[alice].Status.PodIP)...)
		kit.Create(ctx, mallory.Client, p)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, p))
		Consistently(reaches(ctx, pods[mallory], pods[alice])).Should(BeFalse())
		Consistently(reaches(ctx, pods[alice], pods[mallory])).Should(BeFalse())
	})

	attack("policies with the names of those that keep networks apart", "idea: the syncer takes the tenant's for its own", func(ctx SpecContext) {
		mallory := tenant(ctx)
		Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(closedNetwork("closed")).Should(Succeed())
		Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(flatNetwork("far")).Should(Succeed())
		for _, name := range []string{names.EgressPolicy, "closed" + names.NetworkEgressPolicy, "far" + names.NetworkEgressPolicy} {
			kit.Create(ctx, mallory.Client, netPolicy(name, "closed"))
		}
		pod, far := runningIn(ctx, mallory, "closed", "closed"), runningIn(ctx, mallory, "far", "far")
		Consistently(reachesAny(ctx, pod, "198.51.100.7", metadataAddress)).Should(BeEmpty())
		Consistently(reaches(ctx, pod, far)).Should(BeFalse())
		own := kit.SuperOf(mallory, netPolicy("closed"+names.NetworkEgressPolicy, ""))
		Eventually(kit.Read(ctx, super.Client, own)).Should(HaveField("Annotations", Not(HaveKey(names.Cluster))), "it is the syncer's")
	})

	attack("the labels of the syncer on pods and namespaces, synced down by spec.sync.metadata", "idea: a pod escapes the selector of what keeps it apart",
		func(ctx SpecContext) {
			mallory := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
				vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{Metadata: []tenancyv1alpha1.MetadataSync{
					{Kinds: []string{"Pod", "Namespace"}, Labels: []string{"arktos.futurewei.com/", "tenancy.x-k8s.io/"}},
				}}
			})
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(closedNetwork("closed")).Should(Succeed())
			Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(flatNetwork("far")).Should(Succeed())
			far := runningIn(ctx, mallory, "far", "far")
			pod := podOn("forger", "closed")
			pod.Labels[names.OwnEgress], pod.Labels[names.VCName] = "true", "other"
			kit.Create(ctx, mallory.Client, pod)
			copied := kit.SuperOf(mallory, pod)
			Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Status.PodIP", Not(BeEmpty())))
			kit.Edit(ctx, mallory.Client, kit.Namespace("default"), func(ns *corev1.Namespace) {
				metav1.SetMetaDataLabel(&ns.ObjectMeta, networkv1.Label, "far")
				metav1.SetMetaDataLabel(&ns.ObjectMeta, names.VCName, "other")
			})
			Consistently(reaches(ctx, copied, far)).Should(BeFalse())
			Expect(reachesAny(ctx, copied, "198.51.100.7", metadataAddress)()).To(BeEmpty())
			Expect(copied.Labels).NotTo(HaveKey(names.OwnEgress))
		})
})

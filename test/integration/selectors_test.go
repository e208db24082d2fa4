package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// allowMetadata allows the sync of labels and annotations of a kind.
func allowMetadata(kind string, labels, annotations []string) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) {
		if vc.Spec.Sync == nil {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{}
		}
		vc.Spec.Sync.Metadata = append(vc.Spec.Sync.Metadata, tenancyv1alpha1.MetadataSync{
			Kinds: []string{kind}, Labels: labels, Annotations: annotations,
		})
	}
}

var _ = Describe("A label with a domain", Ordered, func() {
	const ns, tier = "tiers", "example.com/tier"
	var red *local.Tenant
	front := &metav1.LabelSelector{MatchLabels: map[string]string{tier: "front"}}

	// selected returns the names of the super cluster's pods that a selector of
	// a copy selects.
	selected := func(ctx SpecContext, selector *metav1.LabelSelector) []string {
		GinkgoHelper()
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		Expect(err).NotTo(HaveOccurred())
		list := &corev1.PodList{}
		Expect(super.Client.List(ctx, list, client.InNamespace(red.Super(ns)), client.MatchingLabelsSelector{Selector: parsed})).To(Succeed())
		var pods []string
		for _, p := range list.Items {
			pods = append(pods, p.Name)
		}
		return pods
	}

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		in := kit.Namespace(ns)
		in.Labels = map[string]string{tier: "front"}
		kit.Create(ctx, red.Client, in, kit.Pod(ns, "web", withLabel(tier, "front")), kit.Pod(ns, "db", withLabel(tier, "back")))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("web", "db"))
	})

	It("works in the selector of a Service", func(ctx SpecContext) {
		s := service(ns, "front")
		s.Spec.Selector = map[string]string{tier: "front"}
		kit.Create(ctx, red.Client, s)
		copied := kit.SuperOf(red, s)
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(selected(ctx, metav1.SetAsLabelSelector(copied.Spec.Selector))).To(ConsistOf("web"))
		Eventually(func(g Gomega) {
			slices := &discoveryv1.EndpointSliceList{}
			g.Expect(super.Client.List(ctx, slices, client.InNamespace(red.Super(ns)), client.MatchingLabels{discoveryv1.LabelServiceName: s.Name})).To(Succeed())
			g.Expect(slices.Items).To(HaveLen(1))
			g.Expect(slices.Items[0].Endpoints).To(ConsistOf(HaveField("TargetRef.Name", "web")))
		}).WithContext(ctx).Should(Succeed())
		Eventually(super.Differences).WithContext(ctx).WithArguments(red).Should(BeEmpty())
	})

	It("works in the selectors of NetworkPolicies and PodDisruptionBudgets", func(ctx SpecContext) {
		policy := &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "front"},
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: *front,
				Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: front, NamespaceSelector: front}}}},
			},
		}
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: policy.ObjectMeta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: front}}
		kit.Create(ctx, red.Client, policy, budget)
		copied, declared := kit.SuperOf(red, policy), kit.SuperOf(red, budget)
		kit.ShouldExist(ctx, super.Client, copied)
		kit.ShouldExist(ctx, super.Client, declared)
		Expect(selected(ctx, &copied.Spec.PodSelector)).To(ConsistOf("web"))
		Expect(selected(ctx, declared.Spec.Selector)).To(ConsistOf("web"))
		peer := copied.Spec.Ingress[0].From[0]
		Expect(selected(ctx, peer.PodSelector)).To(ConsistOf("web"))
		selector, err := metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
		Expect(err).NotTo(HaveOccurred())
		namespaces := &corev1.NamespaceList{}
		Expect(super.Client.List(ctx, namespaces, client.MatchingLabelsSelector{Selector: selector})).To(Succeed())
		Expect(namespaces.Items).To(ConsistOf(HaveField("Name", red.Super(ns))))
		web := kit.SuperOf(red, kit.Pod(ns, "web"))
		Eventually(kit.Read(ctx, super.Client, web)).Should(HaveField("Labels", HaveKey(names.OwnIngress)), "the tenant's policy selects it")
	})

	It("works in pod anti-affinity", func(ctx SpecContext) {
		aside := asideFrom(corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{tier: "apart"}}})
		kit.Create(ctx, red.Client, kit.Pod(ns, "a", withLabel(tier, "apart"), aside), kit.Pod(ns, "b", withLabel(tier, "apart"), aside))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElements("a", "b"))
		one, other := must(kit.Read(ctx, red.Client, kit.Pod(ns, "a"))()), must(kit.Read(ctx, red.Client, kit.Pod(ns, "b"))())
		Expect(one.Spec.NodeName).NotTo(Equal(other.Spec.NodeName))
	})

	It("and an annotation are synced down with their own keys if the admin allows it, also those of existing objects", func(ctx SpecContext) {
		s := service(ns, "front")
		Expect(kit.Get(ctx, red.Client, s)).To(Succeed())
		kit.Edit(ctx, red.Client, s, func(s *corev1.Service) {
			s.Annotations = map[string]string{"example.com/note": "x", "other.example.com/note": "y"}
		})
		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			allowMetadata("Pod", []string{"example.com/"}, nil)(vc)
			allowMetadata("Service", nil, []string{"example.com/*"})(vc)
		})
		web := kit.SuperOf(red, kit.Pod(ns, "web"))
		Eventually(kit.Read(ctx, super.Client, web)).
			Should(HaveField("Labels", And(HaveKeyWithValue(tier, "front"), Not(HaveKey(names.Label(tier))))))
		copied := kit.SuperOf(red, s)
		Eventually(kit.Read(ctx, super.Client, copied)).Should(And(
			HaveField("Spec.Selector", HaveKeyWithValue(tier, "front")),
			HaveField("Annotations", And(HaveKeyWithValue("example.com/note", "x"), Not(HaveKey("other.example.com/note")))),
		))

		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Sync = nil })
		Eventually(kit.Read(ctx, super.Client, web)).
			Should(HaveField("Labels", And(HaveKeyWithValue(names.Label(tier), "front"), Not(HaveKey(tier)))))
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Annotations", Not(HaveKey("example.com/note"))))
	})
})

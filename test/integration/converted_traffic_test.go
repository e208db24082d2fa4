package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The traffic of a converted tenant", Ordered, ContinueOnFailure, func() {
	var red, blue *local.Tenant
	// of returns a pod of a tenant, as the policies of the super cluster see it.
	of := func(t *local.Tenant, namespace, app string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.Super(namespace), Labels: map[string]string{"app": app, names.Converted: t.Key()}},
			Status:     corev1.PodStatus{PodIP: "10.244.0.9"},
		}
	}
	reaches := func(ctx context.Context, from, to *corev1.Pod) func() (bool, error) {
		return func() (bool, error) { return kit.Reaches(ctx, super.Client, from, to) }
	}
	policyNames := func(ctx context.Context, c client.Client, namespace string) []string {
		GinkgoHelper()
		list := &networkingv1.NetworkPolicyList{}
		Expect(c.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		var all []string
		for i := range list.Items {
			all = append(all, list.Items[i].Name)
		}
		return all
	}

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account)
		red, blue = kit.Tenant(ctx, super, kit.VirtualCluster(converted)), kit.Tenant(ctx, super, kit.VirtualCluster(converted))
		for _, t := range []*local.Tenant{red, blue} {
			Eventually(func() error { return t.Client.Create(ctx, namespaceOf("shop")) }).Should(Succeed())
			Expect(policyNames(ctx, super.Client, t.Super("shop"))).To(ContainElement(names.IsolationPolicy), "before the tenant knows the namespace")
		}
	})

	It("reaches its own pods, and not those of others", func(ctx SpecContext) {
		hosted := tenant(ctx)
		for _, namespace := range []string{"default", "shop"} {
			to := of(red, namespace, "web")
			Eventually(reaches(ctx, of(red, "kube-system", "any"), to)).Should(BeTrue())
			Expect(reaches(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system"}}, to)()).To(BeTrue(), "the platform")
			Expect(reaches(ctx, of(blue, "shop", "web"), to)()).To(BeFalse())
			kit.Create(ctx, hosted.Client, kit.Pod("default", "from-"+namespace))
			Eventually(reaches(ctx, of(hosted, "default", "web"), to)).Should(BeFalse())
			Eventually(reaches(ctx, to, of(hosted, "default", "web"))).Should(BeFalse())
		}
		Expect(policyNames(ctx, red.Client, "shop")).To(BeEmpty(), "the tenant does not see the platform's")
		Expect(policyNames(ctx, red.Client, "")).To(BeEmpty())
	})

	It("is restricted by its own NetworkPolicies, which admit no others", func(ctx SpecContext) {
		to, other := of(red, "shop", "web"), of(red, "shop", "db")
		policy := &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{
					{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "front"}}},
				}}},
			},
		}
		kit.Create(ctx, red.Client, policy)
		Expect(policy.Spec.PodSelector.MatchExpressions).To(BeEmpty(), "the tenant sees what it wrote")
		Eventually(reaches(ctx, of(red, "shop", "any"), to)).Should(BeFalse())
		Eventually(reaches(ctx, of(red, "shop", "front"), to)).Should(BeTrue())
		Eventually(reaches(ctx, of(red, "shop", "any"), other)).Should(BeTrue(), "it is about other pods")

		kit.Edit(ctx, red.Client, policy, func(p *networkingv1.NetworkPolicy) { p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}} })
		Eventually(reaches(ctx, of(red, "shop", "any"), to)).Should(BeTrue())
		Consistently(reaches(ctx, of(blue, "shop", "any"), to)).Should(BeFalse())

		p := programsWith(gatewayKubeconfig(ctx, red))
		p.does(ctx, "app=web ", "get", "networkpolicies", "-n", "shop")
		Expect(p.kubectl(ctx, "get", "networkpolicies", "-A")).NotTo(ContainSubstring(names.Domain))
		Expect(red.Client.Delete(ctx, policy)).To(Succeed())
		Eventually(func() []string { return policyNames(ctx, super.Client, red.Super("shop")) }).Should(
			ConsistOf(names.IsolationPolicy, names.DefaultPolicy))
	})

	It("has policies that select what they say, however they are written", func(ctx SpecContext) {
		applied := networkingv1ac.NetworkPolicy("all", "shop").WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
			WithPolicyTypes(networkingv1.PolicyTypeIngress))
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
		closed := func(app string, want bool) {
			GinkgoHelper()
			Eventually(reaches(ctx, of(red, "shop", "any"), of(red, "shop", app))).Should(Equal(!want), app)
		}
		inert := func() {
			GinkgoHelper()
			inSuper := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: red.Super("shop"), Name: "all"}}
			Expect(kit.Get(ctx, super.Client, inSuper)).To(Succeed())
			Expect(inSuper.Spec.PodSelector.MatchExpressions).To(ContainElement(
				metav1.LabelSelectorRequirement{Key: names.Converted, Operator: metav1.LabelSelectorOpDoesNotExist}))
		}
		for range 2 {
			Expect(red.Client.Apply(ctx, applied, client.FieldOwner("spec"))).To(Succeed())
			inert()
		}
		closed("web", true)
		for _, patch := range []client.Patch{
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"podSelector":null}}`)),
			client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/podSelector","value":{"matchLabels":{"app":"db"}}}]`)),
			client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"podSelector":{"$patch":"replace","matchLabels":{"app":"db"}}}}`)),
		} {
			Expect(red.Client.Patch(ctx, policy, patch)).To(Succeed())
			Expect(policy.Spec.PodSelector.MatchExpressions).To(BeEmpty())
			inert()
			closed("db", true)
		}
		closed("web", false)
		Expect(red.Client.DeleteAllOf(ctx, &networkingv1.NetworkPolicy{}, client.InNamespace("shop"))).To(Succeed())
		closed("db", false)
		Expect(policyNames(ctx, super.Client, red.Super("shop"))).To(ContainElement(names.IsolationPolicy))
	})

	It("stays isolated when an admin deletes or changes what isolates it", func(ctx SpecContext) {
		key := metav1.ObjectMeta{Namespace: red.Super("shop"), Name: names.IsolationPolicy}
		isolation := &networkingv1.NetworkPolicy{ObjectMeta: key}
		kit.Edit(ctx, super.Client, isolation, func(p *networkingv1.NetworkPolicy) { p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}} })
		Eventually(kit.Read(ctx, super.Client, isolation)).Should(HaveField("Spec.Ingress", BeEmpty()))
		Expect(super.Client.Delete(ctx, isolation)).To(Succeed())
		Eventually(func() error { return kit.Get(ctx, super.Client, &networkingv1.NetworkPolicy{ObjectMeta: key}) }).Should(Succeed())
	})

	It("is open to other tenants while the policy of the tenant says so", func(ctx SpecContext) {
		open := func(allowed bool) {
			GinkgoHelper()
			kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
				vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{AllowTrafficFromTenants: allowed}
			})
			Eventually(reaches(ctx, of(blue, "shop", "any"), of(red, "shop", "web"))).Should(Equal(allowed))
			Eventually(kit.Read(ctx, super.Client, red.VC)).Should(WithTransform(func(vc *tenancyv1alpha1.VirtualCluster) bool {
				ready := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady)
				return ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == vc.Generation
			}, BeTrue()), "vc-manager has seen it")
			Consistently(reaches(ctx, of(blue, "shop", "any"), of(red, "shop", "web"))).Should(Equal(allowed))
		}
		open(true)
		open(false)
		Expect(reaches(ctx, of(red, "default", "any"), of(red, "shop", "web"))()).To(BeTrue())
	})
})

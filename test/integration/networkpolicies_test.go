package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// admitting returns a policy for all pods of the namespace policies, which
// admits those of other namespaces.
func admitting(name string, from *metav1.LabelSelector) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "policies", Name: name},
		Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: from}},
		}}},
	}
}

// admitted returns the namespaces of the super cluster whose pods the copy of a
// policy admits; none without a copy.
func admitted(ctx context.Context, policy *networkingv1.NetworkPolicy) func() ([]string, error) {
	return func() ([]string, error) {
		copied, err := kit.Read(ctx, super.Client, policy)()
		if err != nil || len(copied.Spec.Ingress) == 0 {
			return nil, err
		}
		selector, err := metav1.LabelSelectorAsSelector(copied.Spec.Ingress[0].From[0].NamespaceSelector)
		if err != nil {
			return nil, err
		}
		list := &corev1.NamespaceList{}
		if err := super.Client.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return nil, err
		}
		var names []string
		for _, ns := range list.Items {
			names = append(names, ns.Name)
		}
		return names, nil
	}
}

var _ = Describe("A NetworkPolicy", Ordered, func() {
	const ns = "policies"
	var red, blue *local.Tenant
	named := func(names ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: names},
		}}
	}

	BeforeAll(func(ctx SpecContext) {
		opaque := func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.OpaqueMetaPrefixes = []string{"internal.example.com/"}
		}
		red, blue = tenant(ctx, opaque), tenant(ctx)
		for _, t := range []*local.Tenant{red, blue} {
			labelled := kit.Namespace("labelled")
			labelled.Labels = map[string]string{"team": "shop"}
			kit.Create(ctx, t.Client, kit.Namespace(ns), labelled)
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(t, kit.Namespace(ns)))
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(t, labelled))
		}
	})

	It("admits only the tenant's own namespaces, whatever its selector", func(ctx SpecContext) {
		byName, byLabel, all := admitting("by-name", named(ns, "default")),
			admitting("by-label", &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}),
			admitting("all", &metav1.LabelSelector{})
		others := admitting("others", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"labelled", ns}},
		}})
		kit.Create(ctx, red.Client, byName, byLabel, all, others)
		Eventually(admitted(ctx, kit.SuperOf(red, byName))).Should(ConsistOf(red.Super(ns), red.Super("default")))
		Eventually(admitted(ctx, kit.SuperOf(red, byLabel))).Should(ConsistOf(red.Super("labelled")))
		Eventually(admitted(ctx, kit.SuperOf(red, all))).Should(And(
			ContainElements(red.Super(ns), red.Super("labelled"), red.Super("default")), HaveEach(HavePrefix(red.Key()))))
		Eventually(admitted(ctx, kit.SuperOf(red, others))).Should(And(
			ContainElement(red.Super("default")), Not(ContainElements(red.Super(ns), red.Super("labelled"))), HaveEach(HavePrefix(red.Key()))))
	})

	It("is updated, and is corrected", func(ctx SpecContext) {
		policy := admitting("changing", named("default"))
		kit.Create(ctx, red.Client, policy)
		down := kit.SuperOf(red, policy)
		Eventually(admitted(ctx, down)).Should(ConsistOf(red.Super("default")))
		kit.Edit(ctx, red.Client, policy, func(p *networkingv1.NetworkPolicy) { p.Spec.Ingress[0].From[0].NamespaceSelector = named(ns) })
		Eventually(admitted(ctx, down)).Should(ConsistOf(red.Super(ns)))
		kit.Edit(ctx, super.Client, kit.SuperOf(red, policy), func(p *networkingv1.NetworkPolicy) {
			p.Spec.Ingress[0].From[0].NamespaceSelector = named(blue.Super(ns))
		})
		Eventually(admitted(ctx, down)).Should(ConsistOf(red.Super(ns)))
		Expect(super.Client.Delete(ctx, kit.SuperOf(red, policy))).To(Succeed())
		Eventually(admitted(ctx, down)).Should(ConsistOf(red.Super(ns)))
		Expect(red.Client.Delete(ctx, policy)).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, policy))
	})

	It("that would not be enforced is rejected", func(ctx SpecContext) {
		policy := admitting("opaque", &metav1.LabelSelector{MatchLabels: map[string]string{"internal.example.com/tier": "front"}})
		kit.Create(ctx, red.Client, policy)
		Eventually(kit.Rejections(ctx, red, policy)).Should(ContainElement(ContainSubstring("internal.example.com/tier")))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, policy))).NotTo(Succeed())

		kit.Edit(ctx, red.Client, policy, func(p *networkingv1.NetworkPolicy) { p.Spec.Ingress[0].From[0].NamespaceSelector = named(ns) })
		Eventually(admitted(ctx, kit.SuperOf(red, policy))).Should(ConsistOf(red.Super(ns)))
	})
})

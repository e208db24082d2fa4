package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// own returns one of the syncer's own policies in a tenant's namespace of the
// super cluster.
func own(t *local.Tenant, ns, name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: t.Super(ns), Name: name}}
}

// beWhole matches a policy that admits no other tenant's pod.
func beWhole(t *local.Tenant) func(context.Context, *networkingv1.NetworkPolicy) func(Gomega) {
	return func(ctx context.Context, policy *networkingv1.NetworkPolicy) func(Gomega) {
		return func(g Gomega) {
			now, err := kit.Read(ctx, super.Client, policy)()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(now.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress))
			g.Expect(now.Spec.Ingress).To(HaveLen(1))
			g.Expect(now.Spec.Ingress[0].From).To(ConsistOf(
				HaveField("NamespaceSelector.MatchLabels", Equal(map[string]string{names.VCName: t.VC.Name, names.VCNamespace: t.VC.Namespace})),
				HaveField("NamespaceSelector.MatchExpressions", ConsistOf(HaveField("Operator", metav1.LabelSelectorOpDoesNotExist))),
				HaveField("IPBlock", HaveValue(Equal(networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.128.0.0/9"}}))),
			))
		}
	}
}

var _ = Describe("Traffic from other tenants", Ordered, func() {
	const ns = "closed"
	var red *local.Tenant
	var closed, policy *networkingv1.NetworkPolicy
	beClosed := func(ctx context.Context) func(Gomega) {
		return func(g Gomega) {
			g.Expect(kit.Read(ctx, super.Client, closed)()).To(HaveField("Spec", networkingv1.NetworkPolicySpec{
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			}))
		}
	}
	isMarked := func(p *corev1.Pod) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			copied, err := kit.Read(ctx, super.Client, kit.SuperOf(red, p))()
			_, marked := copied.Labels[names.OwnIngress]
			return marked, err
		}
	}

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		closed, policy = own(red, ns, names.IsolationPolicy), own(red, ns, names.DefaultPolicy)
	})

	It("is denied before the first pod of a namespace exists", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		first := kit.Pod(ns, "first")
		kit.Create(ctx, red.Client, first)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, first))
		Eventually(beWhole(red)(ctx, policy)).Should(Succeed())
		Eventually(beClosed(ctx)).Should(Succeed())
		for _, p := range []*networkingv1.NetworkPolicy{closed, policy} {
			made, err := resourceversion.CompareResourceVersion(
				must(kit.Read(ctx, super.Client, p)()).ResourceVersion, must(kit.Read(ctx, super.Client, kit.SuperOf(red, first))()).ResourceVersion)
			Expect(err).NotTo(HaveOccurred())
			Expect(made).To(Equal(-1), "the policy is older than the pod")
		}
	})

	It("is denied again after another client changes or deletes the policy, or removes its labels", func(ctx SpecContext) {
		kit.Edit(ctx, super.Client, policy.DeepCopy(), func(p *networkingv1.NetworkPolicy) { p.Spec.Ingress[0].From = nil })
		Eventually(beWhole(red)(ctx, policy)).Should(Succeed())
		Expect(super.Client.Delete(ctx, policy.DeepCopy())).To(Succeed())
		Eventually(beWhole(red)(ctx, policy)).Should(Succeed())
		Expect(super.Client.Delete(ctx, closed.DeepCopy())).To(Succeed())
		Eventually(beClosed(ctx)).Should(Succeed())
		kit.Edit(ctx, super.Client, closed.DeepCopy(), func(p *networkingv1.NetworkPolicy) {
			p.Labels, p.Spec.Ingress = nil, []networkingv1.NetworkPolicyIngressRule{{}}
		})
		Eventually(beClosed(ctx)).Should(Succeed())
	})

	It("is denied although the tenant has policies with names of the platform's, which is reported", func(ctx SpecContext) {
		for _, name := range []string{names.IsolationPolicy, names.EgressPolicy} { // the second exists with networks alone
			theirs := &networkingv1.NetworkPolicy{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
				Spec:       networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}},
			}
			kit.Create(ctx, red.Client, theirs)
			Eventually(kit.Rejections(ctx, red, theirs)).ShouldNot(BeEmpty())
			Expect(red.Client.Delete(ctx, theirs)).To(Succeed())
		}
		Consistently(beClosed(ctx)).Should(Succeed())
	})

	It("is denied by the tenant's own policies if there are any, and by the default again when they are deleted", func(ctx SpecContext) {
		before, after := kit.Pod(ns, "before"), kit.Pod(ns, "after")
		before.Labels, after.Labels = map[string]string{"app": "web"}, map[string]string{"app": "web"}
		kit.Create(ctx, red.Client, before)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, before))
		Expect(isMarked(before)(ctx)).To(BeFalse())
		theirs := &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
			Spec:       networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: before.Labels}},
		}
		kit.Create(ctx, red.Client, theirs)
		Eventually(isMarked(before)).WithContext(ctx).Should(BeTrue())
		kit.Create(ctx, red.Client, after)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, after))
		Expect(isMarked(after)(ctx)).To(BeTrue(), "from the beginning")
		kit.Edit(ctx, red.Client, theirs, func(p *networkingv1.NetworkPolicy) {
			p.Spec.PodSelector.MatchLabels = map[string]string{"app": "other"}
		})
		Eventually(isMarked(before)).WithContext(ctx).Should(BeFalse())
		kit.Edit(ctx, red.Client, before, func(p *corev1.Pod) { p.Labels["app"] = "other" })
		Eventually(isMarked(before)).WithContext(ctx).Should(BeTrue())
		Expect(red.Client.Delete(ctx, theirs)).To(Succeed())
		Eventually(isMarked(before)).WithContext(ctx).Should(BeFalse())
	})

	It("is denied despite a policy of the tenant that admits all", func(ctx SpecContext) {
		theirs := &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "open"},
			Spec:       networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}},
		}
		kit.Create(ctx, red.Client, theirs)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, theirs))
		Eventually(beWhole(red)(ctx, kit.SuperOf(red, theirs))).Should(Succeed())
	})

	It("is denied if NetworkPolicies are not synced", func(ctx SpecContext) {
		off := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{Kinds: []tenancyv1alpha1.KindSync{{Kind: "NetworkPolicy", Mode: tenancyv1alpha1.SyncOff}}}
		})
		Eventually(beWhole(off)(ctx, own(off, metav1.NamespaceDefault, names.DefaultPolicy))).Should(Succeed())
	})

	It("is admitted while the policy of the VirtualCluster allows it", func(ctx SpecContext) {
		allow := func(allowed bool) {
			GinkgoHelper()
			kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
				vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{AllowTrafficFromTenants: allowed}
			})
		}
		open := kit.SuperOf(red, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "open"}})
		allow(true)
		kit.ShouldVanish(ctx, super.Client, policy.DeepCopy())
		kit.ShouldVanish(ctx, super.Client, closed.DeepCopy())
		Eventually(kit.Read(ctx, super.Client, open)).Should(HaveField("Spec.Ingress", ConsistOf(HaveField("From", BeEmpty()))))
		allow(false)
		kit.ShouldExist(ctx, super.Client, policy.DeepCopy())
		kit.ShouldExist(ctx, super.Client, closed.DeepCopy())
		Eventually(beWhole(red)(ctx, policy)).Should(Succeed())
		Eventually(beWhole(red)(ctx, open)).Should(Succeed())
	})

	It("is not restricted in the super cluster's own namespaces", func(ctx SpecContext) {
		list := &networkingv1.NetworkPolicyList{}
		Expect(super.Client.List(ctx, list)).To(Succeed())
		for _, p := range list.Items {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}}
			if p.Name == names.IsolationPolicy && kit.Get(ctx, super.Client, ns) == nil {
				Expect(ns.Annotations).To(HaveKey(names.VCUID))
			}
		}
	})
})

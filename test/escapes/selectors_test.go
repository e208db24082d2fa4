package escapes

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/limits"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// Selectors of one tenant are compared with each pod, by the syncer and by
// controllers of the super cluster, which all tenants share.
var _ = Describe("What is compared with each pod", Ordered, func() {
	const ns, source, bounded = "selectors", "review: 50 NetworkPolicies of 5,000 values each took 61 % of a core", "no more than 1000"
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})

	attack("a NetworkPolicy for pods by thousands of values", source, func(ctx SpecContext) {
		p := policy(ns, "huge", *huge())
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, bounded)
	})

	attack("a NetworkPolicy of peers by thousands of values", source, func(ctx SpecContext) {
		p := policy(ns, "peers", metav1.LabelSelector{})
		p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: huge()}}}}
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, bounded)
	})

	attack("a NetworkPolicy that grows after it was synced", "review: limits that hold when something is created alone", func(ctx SpecContext) {
		p := policy(ns, "grows", metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
		kit.Create(ctx, mallory.Client, p)
		copied := kit.SuperOf(mallory, p)
		kit.ShouldExist(ctx, super.Client, copied)
		kit.Edit(ctx, mallory.Client, p, func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector = *huge() })
		Eventually(kit.Rejections(ctx, mallory, p)).Should(ContainElement(ContainSubstring(bounded)))
		Expect(kit.Read(ctx, super.Client, copied)()).To(HaveField("Spec.PodSelector", copied.Spec.PodSelector))
	})

	attack("a PodDisruptionBudget for pods by thousands of values", source, func(ctx SpecContext) {
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "huge"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: huge(), MinAvailable: new(intstr.FromInt32(1))},
		}
		kit.Create(ctx, mallory.Client, b)
		shouldBeRejected(ctx, mallory, b, bounded)
	})

	attack("a pod that avoids others by thousands of values", "Kubernetes documentation: inter-pod affinity slows scheduling", func(ctx SpecContext) {
		p := kit.Pod(ns, "shy", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{LabelSelector: huge(), TopologyKey: corev1.LabelHostname},
				},
			}}
		})
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, bounded)
	})

	attack("hundreds of NetworkPolicies in a namespace", source, func(ctx SpecContext) {
		const many, most = 240, 200
		kit.Create(ctx, mallory.Client, kit.Namespace("policies"))
		created := make([]*networkingv1.NetworkPolicy, many)
		for i := range created {
			created[i] = policy("policies", fmt.Sprintf("p%03d", i), metav1.LabelSelector{})
			kit.Create(ctx, mallory.Client, created[i])
		}
		copies := func() (sets.Set[string], error) {
			list := &networkingv1.NetworkPolicyList{}
			err := super.Client.List(ctx, list, client.InNamespace(mallory.Super("policies")), client.HasLabels{names.VCName})
			copied := sets.New[string]()
			for _, p := range list.Items {
				if p.Annotations[names.UID] != "" {
					copied.Insert(p.Name)
				}
			}
			return copied, err
		}
		Eventually(copies).WithTimeout(3 * kit.Soon).Should(HaveLen(most))
		Consistently(copies).Should(HaveLen(most))

		// Which have a copy depends on how many were retried, as after the first
		// ones came before their namespace.
		copied, err := copies()
		Expect(err).NotTo(HaveOccurred())
		for _, p := range created {
			if !copied.Has(p.Name) {
				Eventually(kit.Events(ctx, mallory, p, limits.ReasonLimited)).WithTimeout(3*kit.Soon).Should(
					ContainElement(ContainSubstring("no more than %d networkpolicies in a namespace", most)), p.Name)
			}
		}
	})
})

// huge is a selector of thousands of values.
func huge() *metav1.LabelSelector {
	values := make([]string, 5000)
	for i := range values {
		values[i] = fmt.Sprintf("value-%04d", i)
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: values},
	}}
}

// policy returns a NetworkPolicy that lets nothing in.
func policy(ns, name string, pods metav1.LabelSelector) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       networkingv1.NetworkPolicySpec{PodSelector: pods, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
	}
}

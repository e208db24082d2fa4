package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// evict requests the eviction of the first pod of a namespace.
func evict(ctx context.Context, c client.Client, ns string) error {
	all, err := pods(ctx, c, ns)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.DeletionTimestamp == nil {
			return c.SubResource("eviction").Create(ctx, &p, &policyv1.Eviction{})
		}
	}
	return apierrors.NewTooManyRequests("no pod", 1)
}

var _ = Describe("A PodDisruptionBudget", Ordered, func() {
	const ns = "budgets"
	var (
		red    *local.Tenant
		dep    = deployment(ns, "web", 3)
		budget = &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: new(intstr.FromInt32(3)),
				Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "web"}},
			},
		}
	)
	allows := func(n int32) gomegatypes.GomegaMatcher {
		return HaveField("Status", And(HaveField("CurrentHealthy", BeNumerically(">=", 3)), HaveField("DisruptionsAllowed", n)))
	}
	tooMany := MatchError(apierrors.IsTooManyRequests, "too many requests")

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns), dep, budget)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(3))
	})

	It("prevents evictions on both sides", func(ctx SpecContext) {
		Eventually(kit.Read(ctx, red.Client, budget)).Should(allows(0))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, budget))).Should(allows(0))
		Expect(evict(ctx, super.Client, red.Super(ns))).To(tooMany)
		Expect(evict(ctx, red.Client, ns)).To(tooMany)
	})

	It("with maxUnavailable is evaluated by the tenant, which knows the desired number of pods", func(ctx SpecContext) {
		kit.Edit(ctx, red.Client, budget, func(b *policyv1.PodDisruptionBudget) {
			b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromString("25%"))
		})
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, budget))
		Eventually(down).Should(HaveField("Spec.MinAvailable", new(intstr.FromInt32(2))))
		Eventually(down).Should(allows(1))
		kit.Edit(ctx, red.Client, dep, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)) })
		Eventually(down).Should(HaveField("Spec.MinAvailable", new(intstr.FromInt32(3))))
		Eventually(kit.Read(ctx, red.Client, budget)).Should(allows(1))
		Eventually(down).Should(allows(1))
	})

	It("allows evictions in the super cluster, and the tenant replaces the pods", func(ctx SpecContext) {
		was := must(podNames(ctx, red.Client, ns))
		Eventually(evict).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).Should(Succeed())
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(And(HaveLen(4), Not(ConsistOf(was))))
	})

	It("allows evictions in the tenant", func(ctx SpecContext) {
		was := must(podNames(ctx, super.Client, red.Super(ns)))
		Eventually(evict).WithContext(ctx).WithArguments(red.Client, ns).Should(Succeed())
		Eventually(running).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).Should(And(HaveLen(4), Not(ConsistOf(was))))
	})

	It("is corrected, and is deleted", func(ctx SpecContext) {
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, budget))
		kit.Edit(ctx, super.Client, kit.SuperOf(red, budget), func(b *policyv1.PodDisruptionBudget) {
			b.Spec.MinAvailable = new(intstr.FromInt32(0))
		})
		Eventually(down).Should(HaveField("Spec.MinAvailable", new(intstr.FromInt32(3))))
		Expect(super.Client.Delete(ctx, kit.SuperOf(red, budget))).To(Succeed())
		Eventually(down).Should(HaveField("Spec.MinAvailable", new(intstr.FromInt32(3))))
		Expect(red.Client.Delete(ctx, budget)).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, budget))
	})
})

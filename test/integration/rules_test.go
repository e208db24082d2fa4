package integration

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// withRule sets a rule for the pods of a tenant, and a quota of three.
func withRule(expression string) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Spec.Quota = &tenancyv1alpha1.QuotaSpec{Hard: tenancyv1alpha1.Limits{"pods": "3"}, Rules: []tenancyv1alpha1.QuotaRule{{
			Name: "pods", Kinds: []tenancyv1alpha1.QuotaKind{"Pod"}, Expression: expression, Message: "pods must be as they should",
		}}}
	}
}

// rulesValid returns a function that reads the condition RulesValid of a
// tenant; nil without the condition.
func rulesValid(ctx context.Context, t *local.Tenant) func() (*metav1.Condition, error) {
	return func() (*metav1.Condition, error) {
		vc, err := kit.Read(ctx, super.Client, t.VC)()
		return meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionRulesValid), err
	}
}

var _ = Describe("Rules", Ordered, ContinueOnFailure, func() {
	const ns = "shop"

	BeforeAll(func() {
		file := filepath.Join(GinkgoT().TempDir(), "rules.yaml")
		Expect(os.WriteFile(file, []byte(`
rules:
- name: not-of-root
  kinds: [Pod]
  expression: "!object.spec.containers.exists(c, c.image.endsWith(':root'))"
  message: images of root are not allowed here
`), 0o600)).To(Succeed())
		useSyncer(account, func(o *app.Options) {
			o.QuotaValidation, o.QuotaRules = true, file
			// A tenant is also told of a rule that takes too long, as on a machine that stands still.
			o.Timeout, o.QuotaValidationTimeout = asLong, kit.Soon
		})
	})

	It("of the platform and of the tenant keep a pod pending until it satisfies them", func(ctx SpecContext) {
		red := tenant(ctx, withRule("object.metadata.name.startsWith('web')"))
		Eventually(rulesValid(ctx, red)).Should(HaveField("Status", metav1.ConditionTrue))
		web, other, root := kit.Pod(ns, "web"), kit.Pod(ns, "other"), kit.Pod(ns, "web-root")
		root.Spec.Containers[0].Image = "example.com/web:root"
		kit.Create(ctx, red.Client, kit.Namespace(ns), web, other, root)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("web"))
		const why, whyAll = "RuleViolated: cannot create pod: pods must be as they should", "RuleViolated: cannot create pod: images of root are not allowed here"
		Eventually(kit.Read(ctx, red.Client, other)).Should(WithTransform(heldBack, Equal(why)))
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, other).Should(ConsistOf(why))
		Eventually(kit.Read(ctx, red.Client, root)).Should(WithTransform(heldBack, Equal(whyAll)))

		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), withRule("tenant.name == '"+red.VC.Name+"'"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("web", "other"))
	})

	It("can use the usage and the limits of the tenant", func(ctx SpecContext) {
		red := tenant(ctx, withRule("used['pods'].add(1).isLessThan(hard['pods'])"))
		kit.Create(ctx, red.Client, kit.Namespace(ns), kit.Pod(ns, "a"), kit.Pod(ns, "b"), kit.Pod(ns, "c"))
		Eventually(below(ctx, red)).Should(Equal(2))
		Eventually(quotaOf(ctx, red)).Should(Equal("pods 2/3"))
		Consistently(below(ctx, red)).Should(Equal(2))
	})

	It("that do not compile block the objects that they apply to, and the VirtualCluster reports the error", func(ctx SpecContext) {
		red, blue := tenant(ctx, withRule("objekt.metadata")), tenant(ctx)
		Eventually(rulesValid(ctx, red)).Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "InvalidExpression"),
			HaveField("Message", "spec.quota.rules[0].expression: Invalid value: at 1:1: undeclared reference to 'objekt'")))
		p := kit.Pod(ns, "web")
		kit.Create(ctx, red.Client, kit.Namespace(ns), p)
		kit.Create(ctx, blue.Client, kit.Namespace(ns), kit.Pod(ns, "web"))
		Eventually(running).WithContext(ctx).WithArguments(blue.Client, ns).Should(ConsistOf("web"))
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, p).Should(
			ContainElement(HavePrefix("SyncRejected: it cannot be checked whether the limits allow this, because validator rules does not work")))

		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), withRule("true"))
		Eventually(rulesValid(ctx, red)).Should(HaveField("Status", metav1.ConditionTrue))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("web"))
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Quota = nil })
		Eventually(rulesValid(ctx, red)).Should(BeNil())
	})
})

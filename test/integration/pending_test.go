package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("An object that waits for the deletion of its previous copy", func() {
	It("is explained to the tenant and to admins until it is synced", func(ctx SpecContext) {
		const ns, hold = "waiting", "example.com/hold"
		address := kit.FreeAddress(ctx)
		useSyncer(account, func(o *app.Options) { o.MetricsBindAddress = address })
		reader, config := newAccount(ctx, "pending-reader")
		grant(ctx, reader, rbacv1.PolicyRule{NonResourceURLs: []string{"/debug/pending"}, Verbs: []string{"get"}})

		red := tenant(ctx)
		web := service(ns, "web")
		copied := kit.SuperOf(red, web)
		kit.Create(ctx, red.Client, kit.Namespace(ns), web)
		kit.ShouldExist(ctx, super.Client, copied)
		Eventually(kit.Read(ctx, super.Client, red.VC)).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionSynced, metav1.ConditionTrue, tenancyv1alpha1.ReasonNothingPending))
		kit.Edit(ctx, super.Client, copied, func(s *corev1.Service) { s.Finalizers = append(s.Finalizers, hold) })
		Expect(red.Client.Delete(ctx, web)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, service(ns, "web"))
		again := service(ns, "web")
		kit.Create(ctx, red.Client, again)

		const on = "the deletion of the previous copy in the super cluster"
		Eventually(kit.Events(ctx, red, again, "SyncWaiting")).WithTimeout(2 * kit.Soon).Should(ConsistOf("waiting for " + on))
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(2 * kit.Soon).Should(And(
			kit.HaveCondition(tenancyv1alpha1.ConditionSynced, metav1.ConditionFalse, tenancyv1alpha1.ReasonObjectsPending),
			HaveField("Status.Conditions", ContainElement(HaveField("Message", MatchRegexp(`^\d objects? pending, oldest Service waiting/web: Waiting `+on))))))
		path := "/debug/pending?tenant=" + red.VC.Namespace + "/" + red.VC.Name
		Eventually(fetch).WithContext(ctx).WithArguments(address, path, account.BearerToken).Should(HavePrefix("403"))
		Eventually(fetch).WithContext(ctx).WithArguments(address, path, config.BearerToken).WithTimeout(3 * kit.Soon).
			Should(And(HavePrefix("200"), ContainSubstring(`"outcome": "Waiting"`), ContainSubstring(`"name": "web"`)))

		kit.Edit(ctx, super.Client, copied, func(s *corev1.Service) { s.Finalizers = nil })
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, again))).Should(HaveField("DeletionTimestamp", BeNil()))
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(2 * kit.Soon).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionSynced, metav1.ConditionTrue, tenancyv1alpha1.ReasonNothingPending))
	})

	It("has a latency from its event to its copy, and a pod one until it runs", func(ctx SpecContext) {
		copied := func() (float64, error) {
			return syncer.Metric("vc_syncer_latency_seconds", map[string]string{"kind": "Pod", "until": "copied"})
		}
		running := func() (float64, error) {
			return syncer.Metric("vc_syncer_latency_seconds", map[string]string{"kind": "Pod", "until": "running"})
		}
		copiedBefore, runningBefore := must(copied()), must(running())
		red := tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace("latency"), kit.Pod("latency", "web"))
		Eventually(copied).Should(BeNumerically(">", copiedBefore))
		Eventually(running).Should(BeNumerically(">", runningBefore))
	})
})

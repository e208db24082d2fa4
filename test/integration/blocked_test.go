package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A pod in a namespace that is created again while its old copy is still being deleted", func() {
	It("gets an event after a while that names the namespace, and is synced when the copy is gone", func(ctx SpecContext) {
		const name, hold = "again", "example.com/hold"
		blocked := func() (float64, error) {
			return syncer.Metric("vc_syncer_pending_objects", map[string]string{"kind": "Pod", "outcome": "blocked"})
		}
		Eventually(blocked).WithTimeout(recovery).Should(BeZero(), "tenants of other specs are gone")
		red := tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(name))
		below := kit.SuperOf(red, kit.Namespace(name))
		kit.ShouldExist(ctx, super.Client, below)
		kit.Edit(ctx, super.Client, below, func(ns *corev1.Namespace) { ns.Finalizers = append(ns.Finalizers, hold) })
		Expect(red.Client.Delete(ctx, kit.Namespace(name))).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, kit.Namespace(name))

		pod := kit.Pod(name, "web")
		kit.Create(ctx, red.Client, kit.Namespace(name), pod)
		Eventually(blocked).Should(BeNumerically(">", 0))
		Eventually(kit.Events(ctx, red, pod, "SyncBlocked")).WithTimeout(2 * kit.Soon).
			Should(ConsistOf("blocked on Namespace again, which does not exist or is not synced yet"))

		kit.Edit(ctx, super.Client, below, func(ns *corev1.Namespace) { ns.Finalizers = nil })
		Eventually(kit.Read(ctx, red.Client, pod)).Should(HaveField("Spec.NodeName", Not(BeEmpty())))
		Eventually(blocked).Should(BeZero())
	})
})

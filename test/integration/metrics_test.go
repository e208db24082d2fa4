package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("The metrics", func() {
	// metric returns the current value of a metric.
	metric := func(name string, with map[string]string) func() (float64, error) {
		return func() (float64, error) { return syncer.Metric(name, with) }
	}

	It("count a rejected object, and follow the creation and deletion of a tenant", func(ctx SpecContext) {
		const ns = "counted"
		nothingIsLeft(ctx) // of tenants of other specs, whose objects would be counted until they are gone
		ready := metric("vc_syncer_tenants", map[string]string{"reason": tenancyv1alpha1.ReasonReady})
		refused := metric("vc_syncer_pending_objects", map[string]string{"kind": "Service", "outcome": "rejected"})
		before, err := ready()
		Expect(err).NotTo(HaveOccurred())

		vc := virtualCluster()
		red, err := super.NewTenant(ctx, vc)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(beginRemoval, vc)
		Expect(ready()).To(BeNumerically(">", 0))

		kit.Create(ctx, red.Client, kit.Namespace(ns))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, kit.Namespace(ns)))
		Eventually(metric("vc_syncer_sync_duration_seconds", map[string]string{"kind": "Namespace", "direction": "down", "outcome": "synced"})).
			Should(BeNumerically(">", 0))
		none, err := refused()
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"mended", "deleted", "left"} {
			greedy := service(ns, name)
			greedy.Spec.ExternalIPs = []string{"192.0.2.1"} // which could intercept the traffic of others
			kit.Create(ctx, red.Client, greedy)
		}
		Eventually(refused).Should(Equal(none + 3))
		kit.Edit(ctx, red.Client, service(ns, "mended"), func(s *corev1.Service) { s.Spec.ExternalIPs = nil })
		Expect(red.Client.Delete(ctx, service(ns, "deleted"))).To(Succeed())
		Eventually(refused).Should(Equal(none + 1))

		removeTenant(ctx, vc)
		Eventually(refused).Should(Equal(none))
		Eventually(ready).Should(BeNumerically("<=", before))
	})
})

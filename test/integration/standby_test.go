package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A syncer that is not the leader", func() {
	It("reads only the leader's Lease, has no caches, and takes over at once when the leader stops", func(ctx SpecContext) {
		const ns = "led"
		electing := func(o *app.Options) { o.LeaderElect, o.LeaderElectNamespace = true, rbac.Namespace }
		red := tenant(ctx)
		useSyncer(account, electing)
		kit.Create(ctx, red.Client, kit.Namespace(ns), kit.Pod(ns, "first"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("first"))

		standby := local.StartSyncer(account, logger, electing)
		DeferCleanup(func() { Expect(standby.Stop()).To(Succeed()) })
		Eventually(standby.Requests).Should(HaveKeyWithValue("super get leases", BeNumerically(">=", 3)))
		sent, err := standby.Requests()
		Expect(err).NotTo(HaveOccurred())
		for request := range sent {
			Expect(request).To(Or(Equal("super get leases"), Equal("super get none")), "a lease, and what the super cluster serves")
		}
		Expect(standby.Metric("vc_syncer_open_watches", map[string]string{})).To(BeZero())

		Expect(syncer.Stop()).To(Succeed())
		kit.Create(ctx, red.Client, kit.Pod(ns, "second"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("first", "second"))
	})
})

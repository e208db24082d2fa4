package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The requests for one pod", func() {
	It("are one for each state worth showing, and no reads", func(ctx SpecContext) {
		const ns = "count"
		red := tenant(ctx)
		// The first pod brings the namespace, the service account and its node.
		create(ctx, red.Client, namespace(ns), deployment(ns, "warm", 12))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(12))
		settle(ctx)

		before, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		one := pod(ns, "one")
		create(ctx, red.Client, one)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement("one"))
		settle(ctx)
		made, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		Expect(made.Since(before)).To(Equal(local.Requests{
			"super create pods":          1,
			"tenant create pods/binding": 1,
			"tenant patch pods/status":   1,
			"tenant create events":       1,
		}))

		Expect(red.Client.Delete(ctx, one, client.GracePeriodSeconds(1))).To(Succeed())
		shouldVanish(ctx, red.Client, one)
		settle(ctx)
		removed, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		Expect(removed.Since(made)).To(Equal(local.Requests{
			"super delete pods":  1,
			"tenant delete pods": 1,
		}))
	})
})

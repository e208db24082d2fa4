package integration

import (
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = DescribeTable("The requests for one pod are one for each relevant state, and no reads",
	func(ctx SpecContext, change func(*corev1.Pod), more, last local.Requests) {
		const ns = "count"
		red := tenant(ctx)
		// The first pod requires the namespace, the service account and the
		// virtual node.
		kit.Create(ctx, red.Client, kit.Namespace(ns), deployment(ns, "warm", 12))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(12))
		settle(ctx)

		before, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		one := kit.Pod(ns, "one", change)
		kit.Create(ctx, red.Client, one)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement("one"))
		// The event comes from the scheduler, which may be late.
		Eventually(func() ([]corev1.Event, error) {
			list, copied := &corev1.EventList{}, kit.SuperOf(red, one)
			err := super.Client.List(ctx, list, client.InNamespace(copied.Namespace), client.MatchingFields{"involvedObject.name": copied.Name})
			return list.Items, err
		}).ShouldNot(BeEmpty(), "events in the super cluster")
		Eventually(syncer.Requests).WithContext(ctx).Should(WithTransform(
			func(now local.Requests) local.Requests { return now.Since(before) }, HaveKey("tenant create events")))
		settle(ctx)
		made, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		want := local.Requests{
			"super create pods":          1,
			"tenant create pods/binding": 1,
			"tenant patch pods/status":   1,
			"tenant create events":       1,
		}
		maps.Copy(want, more)
		Expect(made.Since(before)).To(Equal(want))

		Expect(red.Client.Delete(ctx, one, client.GracePeriodSeconds(1))).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, one)
		settle(ctx)
		removed, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		want = local.Requests{
			"super delete pods":  1,
			"tenant delete pods": 1,
		}
		maps.Copy(want, last)
		Expect(removed.Since(made)).To(Equal(want))
	},
	Entry("without a token", func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(false) }, nil, nil),
	Entry("with a token, which is issued and stored", func(*corev1.Pod) {},
		local.Requests{"tenant create serviceaccounts/token": 1, "super patch secrets": 1}, local.Requests{"super delete secrets": 1}),
)

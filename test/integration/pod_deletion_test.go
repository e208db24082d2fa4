package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// endingIn matches a pod that is being deleted with a grace period.
func endingIn(seconds int64) gomegatypes.GomegaMatcher {
	return And(HaveField("DeletionTimestamp", Not(BeNil())), HaveField("DeletionGracePeriodSeconds", HaveValue(Equal(seconds))))
}

var _ = Describe("A pod that is deleted", Ordered, func() {
	const ns = "ending"
	var (
		red  *local.Tenant
		node *corev1.Node
	)

	BeforeAll(func(ctx SpecContext) {
		red, node = tenant(ctx), bareNode(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns))
	})

	It("has the tenant's grace period, which the tenant can shorten", func(ctx SpecContext) {
		p := kit.Pod(ns, "slow", onNode(node))
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		Expect(red.Client.Delete(ctx, p, client.GracePeriodSeconds(60))).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, copied)).Should(endingIn(60))
		Expect(kit.Read(ctx, red.Client, p)()).To(endingIn(60))

		Expect(red.Client.Delete(ctx, p, client.GracePeriodSeconds(1))).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, copied)).Should(endingIn(1))

		By("reporting its status until it has terminated")
		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) {
			s.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error"}}
		})
		Eventually(kit.Read(ctx, red.Client, p)).
			Should(HaveField("Status.ContainerStatuses", ConsistOf(HaveField("State.Terminated.ExitCode", int32(143)))))
		Expect(ends(ctx, copied)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, p)
	})

	It("is deleted in the tenant with the grace period of an admin of the super cluster", func(ctx SpecContext) {
		p := kit.Pod(ns, "evicted", onNode(node))
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		Expect(super.Client.Delete(ctx, copied, client.GracePeriodSeconds(45))).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, p)).Should(endingIn(45))
		Expect(ends(ctx, copied)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, p)
	})

	It("is deleted at once by force, even if its node is unreachable, and frees its name", func(ctx SpecContext) {
		for _, patience := range []int64{0, 30} {
			old := kit.Pod(ns, "twin", onNode(node))
			kit.Create(ctx, red.Client, old)
			copied := runs(ctx, red, old)
			if patience > 0 {
				Expect(red.Client.Delete(ctx, old, client.GracePeriodSeconds(patience))).To(Succeed())
				Eventually(kit.Read(ctx, super.Client, copied)).Should(endingIn(patience))
			}
			Expect(red.Client.Delete(ctx, old, client.GracePeriodSeconds(0))).To(Succeed())
			kit.ShouldVanish(ctx, red.Client, old)
			twin := kit.Pod(ns, "twin", onNode(node))
			kit.Create(ctx, red.Client, twin)
			Eventually(kit.Read(ctx, super.Client, copied)).Should(And(
				HaveField("UID", Not(Equal(copied.UID))), HaveField("Annotations", HaveKeyWithValue(names.UID, string(twin.UID))),
			))
			runs(ctx, red, twin)
			Expect(red.Client.Delete(ctx, twin, client.GracePeriodSeconds(0))).To(Succeed())
			kit.ShouldVanish(ctx, super.Client, copied)
		}
	})

	It("reserves its name until the super cluster has deleted it", func(ctx SpecContext) {
		const hold = "example.com/hold"
		old := kit.Pod(ns, "held", onNode(node))
		kit.Create(ctx, red.Client, old)
		copied := runs(ctx, red, old)
		kit.Edit(ctx, super.Client, copied, func(p *corev1.Pod) { p.Finalizers = []string{hold} })
		Expect(red.Client.Delete(ctx, old, client.GracePeriodSeconds(0))).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, old)
		next := kit.Pod(ns, "held", onNode(node))
		kit.Create(ctx, red.Client, next)
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("DeletionTimestamp", Not(BeNil())))
		Consistently(kit.Read(ctx, super.Client, copied)).Should(HaveField("UID", copied.UID))
		Consistently(kit.Read(ctx, red.Client, next)).
			Should(And(HaveField("Status.Phase", corev1.PodPending), HaveField("DeletionTimestamp", BeNil())))

		kit.Edit(ctx, super.Client, copied, func(p *corev1.Pod) { p.Finalizers = nil })
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Annotations", HaveKeyWithValue(names.UID, string(next.UID))))
		runs(ctx, red, next)
	})

	It("is deleted with its namespace", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, kit.Namespace("doomed"))
		p := kit.Pod("doomed", "last", onNode(node))
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		Expect(red.Client.Delete(ctx, kit.Namespace("doomed"))).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("DeletionTimestamp", Not(BeNil())))

		By("having its grace period, as in any cluster")
		Consistently(kit.Read(ctx, super.Client, kit.SuperOf(red, kit.Namespace("doomed")))).Should(HaveField("DeletionTimestamp", BeNil()))
		Expect(ends(ctx, copied)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, p)
		kit.ShouldVanish(ctx, red.Client, kit.Namespace("doomed"))
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, kit.Namespace("doomed")))
	})

	It("is deleted with its namespace in the super cluster, which is recreated for the next pod", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, kit.Namespace("pulled"))
		p := kit.Pod("pulled", "last", onNode(node))
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		down := kit.SuperOf(red, kit.Namespace("pulled"))
		Expect(kit.Get(ctx, super.Client, down)).To(Succeed())
		was := down.UID
		Expect(super.Client.Delete(ctx, down)).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, p)).Should(HaveField("DeletionTimestamp", Not(BeNil())))
		next := kit.Pod("pulled", "next", onNode(node))
		kit.Create(ctx, red.Client, next)
		Expect(ends(ctx, copied)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, p)
		Eventually(kit.Read(ctx, super.Client, down)).WithTimeout(2 * kit.Soon).
			Should(And(HaveField("UID", Not(BeEmpty())), HaveField("UID", Not(Equal(was)))))
		runs(ctx, red, next)

		By("deleting it on both sides")
		Expect(super.Client.Delete(ctx, down)).To(Succeed())
		Expect(red.Client.Delete(ctx, kit.Namespace("pulled"))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(client.IgnoreNotFound(ends(ctx, kit.SuperOf(red, next)))).To(Succeed())
			g.Expect(kit.Get(ctx, red.Client, kit.Namespace("pulled"))).To(MatchError(apierrors.IsNotFound, "not found"))
			g.Expect(kit.Get(ctx, super.Client, down)).To(MatchError(apierrors.IsNotFound, "not found"))
		}).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(Succeed())
	})
})

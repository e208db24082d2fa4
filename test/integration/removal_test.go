package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// herd is the number of pods in specs about the loss of all pods, more than may
// vanish without a confirmation; pasture is their namespace.
const (
	herd    = 8
	pasture = "herd"
)

// withHerd creates a tenant with a namespace of herd running pods, each with a
// ConfigMap to which it refers, and returns the UIDs of the copies.
func withHerd(ctx context.Context) (*local.Tenant, map[string]types.UID) {
	GinkgoHelper()
	red := tenant(ctx)
	kit.Create(ctx, red.Client, kit.Namespace(pasture), configMap(pasture, "web", nil))
	for i := range herd {
		kit.Create(ctx, red.Client, kit.Pod(pasture, fmt.Sprintf("p%02d", i), withConfigMap("web")))
	}
	Eventually(running).WithContext(ctx).WithArguments(red.Client, pasture).WithTimeout(2 * kit.Soon).Should(HaveLen(herd))
	return red, must(copyUIDs(ctx, red))
}

// copyUIDs returns the UIDs of the copies of the herd's pods, by name, that are
// not being deleted.
func copyUIDs(ctx context.Context, t *local.Tenant) (map[string]types.UID, error) {
	all, err := pods(ctx, super.Client, t.Super(pasture))
	uids := map[string]types.UID{}
	for _, p := range all {
		if p.DeletionTimestamp == nil {
			uids[p.Name] = p.UID
		}
	}
	return uids, err
}

// syncing matches the condition Syncing of a VirtualCluster.
func syncing(status metav1.ConditionStatus, reason string) gomegatypes.GomegaMatcher {
	return kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, status, reason)
}

var _ = Describe("Pods that vanish without a deletion", func() {
	shouldBeAskedAbout := func(ctx context.Context, red *local.Tenant, copies map[string]types.UID) {
		GinkgoHelper()
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(2 * kit.Soon).
			Should(syncing(metav1.ConditionFalse, tenancyv1alpha1.ReasonRemovalUnconfirmed))
		Expect(must(kit.Read(ctx, super.Client, red.VC)()).Status.Conditions).
			To(ContainElement(HaveField("Message", ContainSubstring(names.ConfirmRemoval+"="+fmt.Sprint(herd)))))
		Consistently(copyUIDs).WithContext(ctx).WithArguments(red).WithTimeout(2 * kit.Quiet).Should(Equal(copies))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, configMap(pasture, "web", nil)))).
			To(Succeed(), "the references of the pods stay with them")
	}
	confirm := func(ctx context.Context, red *local.Tenant, pods int) {
		GinkgoHelper()
		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Annotations = map[string]string{names.ConfirmRemoval: fmt.Sprint(pods)}
		})
	}

	It("keep running until an admin confirms the number of deletions", func(ctx SpecContext) {
		red, copies := withHerd(ctx)
		Expect(super.DeleteKeys(ctx, red.Key(), "pods/")).To(Succeed())
		shouldBeAskedAbout(ctx, red, copies)

		confirm(ctx, red, herd-1)
		Consistently(copyUIDs).WithContext(ctx).WithArguments(red).Should(Equal(copies))

		confirm(ctx, red, herd)
		Eventually(podNames).WithContext(ctx).WithArguments(super.Client, red.Super(pasture)).WithTimeout(2 * kit.Soon).Should(BeEmpty())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, configMap(pasture, "web", nil)))
		Eventually(kit.Read(ctx, super.Client, red.VC)).Should(syncing(metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		kit.Create(ctx, red.Client, kit.Pod(pasture, "new"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, pasture).Should(ConsistOf("new"))
	})

	It("keep running when they vanish with their namespace", func(ctx SpecContext) {
		red, copies := withHerd(ctx)
		Expect(super.DeleteKeys(ctx, red.Key(), "namespaces/"+pasture)).To(Succeed())
		Expect(super.DeleteKeys(ctx, red.Key(), "pods/")).To(Succeed())
		shouldBeAskedAbout(ctx, red, copies)
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, kit.Namespace(pasture)))).To(Succeed())
	})

	It("keep running when no syncer saw them vanish, and after several restarts", func(ctx SpecContext) {
		red, copies := withHerd(ctx)
		whileStopped(func() { Expect(super.DeleteKeys(ctx, red.Key(), "pods/")).To(Succeed()) })
		shouldBeAskedAbout(ctx, red, copies)
		restartSyncer()
		shouldBeAskedAbout(ctx, red, copies)
		confirm(ctx, red, herd)
		Eventually(podNames).WithContext(ctx).WithArguments(super.Client, red.Super(pasture)).WithTimeout(2 * kit.Soon).Should(BeEmpty())
	})
})

var _ = DescribeTable("Deleted pods are gone, whatever their number",
	func(ctx SpecContext, away bool, remove func(context.Context, *local.Tenant)) {
		red, _ := withHerd(ctx)
		if away {
			whileStopped(func() { remove(ctx, red) })
		} else {
			remove(ctx, red)
		}
		shouldBeGone(ctx, red, pasture)
	},
	Entry("all at once while no syncer runs", true, deleteAll()),
	Entry("by force", false, deleteAll(client.GracePeriodSeconds(0))),
	Entry("by force, one after the other", false, deleteEach(client.GracePeriodSeconds(0))),
	Entry("with their namespace while no syncer runs", true, deleteNamespace),
)

var _ = Describe("A Deployment that is scaled to zero while no syncer runs", func() {
	It("has no pods on either side", func(ctx SpecContext) {
		red, dep := tenant(ctx), deployment(pasture, "web", herd)
		kit.Create(ctx, red.Client, kit.Namespace(pasture), dep)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, pasture).WithTimeout(2 * kit.Soon).Should(HaveLen(herd))
		whileStopped(func() {
			kit.Edit(ctx, red.Client, dep, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })
			marked := func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }
			Eventually(pods).WithContext(ctx).WithArguments(red.Client, pasture).Should(HaveEach(Satisfy(marked)))
		})
		shouldBeGone(ctx, red, pasture)
	})
})

// shouldBeGone waits until no pod is left on either side, while the tenant is
// never paused.
func shouldBeGone(ctx context.Context, red *local.Tenant, ns string) {
	GinkgoHelper()
	Eventually(podNames).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).WithTimeout(3 * kit.Soon).Should(BeEmpty())
	Eventually(podNames).WithContext(ctx).WithArguments(red.Client, ns).Should(BeEmpty())
	Consistently(kit.Read(ctx, super.Client, red.VC)).Should(syncing(metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
}

var _ = Describe("Pods that are deleted by force while no syncer runs", func() {
	It("are gone if the tenant has others, or if they are few", func(ctx SpecContext) {
		red, _ := withHerd(ctx)
		kit.Create(ctx, red.Client, kit.Namespace("other"), kit.Pod("other", "stays"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, "other").Should(ConsistOf("stays"))
		whileStopped(func() { deleteAll(client.GracePeriodSeconds(0))(ctx, red) })
		shouldBeGone(ctx, red, pasture)

		whileStopped(func() {
			Expect(red.Client.Delete(ctx, kit.Pod("other", "stays"), client.GracePeriodSeconds(0))).To(Succeed())
		})
		shouldBeGone(ctx, red, "other")
	})
})

// deleteAll deletes all pods of a tenant's namespace with one request, as
// kubectl delete pods --all does.
func deleteAll(opts ...client.DeleteAllOfOption) func(context.Context, *local.Tenant) {
	return func(ctx context.Context, red *local.Tenant) {
		GinkgoHelper()
		Expect(red.Client.DeleteAllOf(ctx, &corev1.Pod{}, append(opts, client.InNamespace(pasture))...)).To(Succeed())
	}
}

func deleteEach(opts ...client.DeleteOption) func(context.Context, *local.Tenant) {
	return func(ctx context.Context, red *local.Tenant) {
		GinkgoHelper()
		for _, p := range must(pods(ctx, red.Client, pasture)) {
			Expect(red.Client.Delete(ctx, &p, opts...)).To(Succeed())
		}
	}
}

func deleteNamespace(ctx context.Context, red *local.Tenant) {
	GinkgoHelper()
	Expect(red.Client.Delete(ctx, kit.Namespace(pasture))).To(Succeed())
}

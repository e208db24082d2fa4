package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// statesOf returns the states of a tenant's VirtualCluster from now on. It misses
// none that lasts only for a moment, as a spec that polls may do.
func statesOf(ctx context.Context, t *local.Tenant) <-chan watch.Event {
	GinkgoHelper()
	w, err := super.Client.Watch(ctx, &tenancyv1alpha1.VirtualClusterList{},
		client.InNamespace(t.VC.Namespace), client.MatchingFields{metav1.ObjectNameField: t.VC.Name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	return w.ResultChan()
}

var _ = Describe("A syncer that restarts", Ordered, func() {
	const ns = "busy"
	var red *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns))
	})

	It("in the middle of a load loses nothing and duplicates nothing", func(ctx SpecContext) {
		const total = 60
		for i := range total {
			kit.Create(ctx, red.Client, kit.Pod(ns, fmt.Sprintf("p%02d", i)))
			if i%20 == 10 {
				restartSyncer()
			}
		}
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).WithTimeout(2 * kit.Soon).Should(HaveLen(total))
		Expect(podNames(ctx, super.Client, red.Super(ns))).To(ConsistOf(must(podNames(ctx, red.Client, ns))))
	})

	It("syncs creations, changes and deletions on either side during its absence", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, service(ns, "kept"), service(ns, "gone"))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, service(ns, "gone")))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, service(ns, "kept")))
		whileStopped(func() {
			Expect(red.Client.Delete(ctx, service(ns, "gone"))).To(Succeed())
			kept := kit.SuperOf(red, service(ns, "kept"))
			Expect(super.Client.Delete(ctx, kept)).To(Succeed())
			kit.Create(ctx, red.Client, service(ns, "new"))
			Expect(red.Client.Delete(ctx, kit.Pod(ns, "p00"))).To(Succeed())
			copied := kit.SuperOf(red, kit.Pod(ns, "p01"))
			Expect(super.Client.Delete(ctx, copied, client.GracePeriodSeconds(0))).To(Succeed())
			kit.ShouldVanish(ctx, super.Client, copied)
		})

		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, service(ns, "gone")))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, service(ns, "kept")))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, service(ns, "new")))
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, kit.Pod(ns, "p00")))
		kit.ShouldVanish(ctx, red.Client, kit.Pod(ns, "p00"))
		kit.ShouldVanish(ctx, red.Client, kit.Pod(ns, "p01"))
	})

	It("recognizes an object of the same name with another UID", func(ctx SpecContext) {
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, service(ns, "new")))
		was := must(kit.Read(ctx, super.Client, kit.SuperOf(red, service(ns, "new")))()).UID
		again := service(ns, "new")
		whileStopped(func() {
			Expect(red.Client.Delete(ctx, service(ns, "new"))).To(Succeed())
			kit.Create(ctx, red.Client, again)
		})
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, service(ns, "new")))).Should(And(
			HaveField("UID", Not(Equal(was))),
			HaveField("Annotations", HaveKeyWithValue(names.UID, string(again.UID)))))
	})

	It("writes nothing without changes", func(ctx SpecContext) {
		settle(ctx)
		restartSyncer()
		Eventually(func() (local.Requests, error) { return syncer.Requests() }).Should(Not(BeEmpty()))
		settle(ctx)
		sent, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		for request := range sent {
			Expect(request).To(MatchRegexp(`^\w+ (get|list) `), "a restart must not write")
		}
	})
})

var _ = Describe("A tenant's apiserver that restarts", func() {
	restart := func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Annotations = map[string]string{names.RestartedAt: time.Now().Format(time.RFC3339Nano)}
	}
	DescribeTable("is synced again, with its objects and its credentials, without affecting another tenant", func(
		ctx SpecContext, isolation tenancyv1alpha1.Isolation, restart func(*tenancyv1alpha1.VirtualCluster),
	) {
		const ns = "steady"
		red, blue := tenant(ctx, kit.WithIsolation(isolation)), tenant(ctx, kit.WithIsolation(isolation))
		for _, t := range []*local.Tenant{red, blue} {
			kit.Create(ctx, t.Client, kit.Namespace(ns), kit.Pod(ns, "before"))
			Eventually(running).WithContext(ctx).WithArguments(t.Client, ns).Should(ConsistOf("before"))
		}
		before := must(kit.Read(ctx, super.Client, kit.SuperOf(red, kit.Pod(ns, "before")))()).UID

		states := statesOf(ctx, red)
		kit.Edit(ctx, super.Client, red.VC, restart)
		Eventually(states).Should(Receive(HaveField("Object",
			kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionFalse, tenancyv1alpha1.ReasonStarting))))
		kit.Create(ctx, blue.Client, kit.Pod(ns, "meanwhile"))
		Eventually(running).WithContext(ctx).WithArguments(blue.Client, ns).Should(ConsistOf("before", "meanwhile"))
		Expect(super.WaitReady(ctx, red.VC)).To(Succeed())

		kit.Create(ctx, red.Client, kit.Pod(ns, "after"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).WithTimeout(2 * kit.Soon).Should(ConsistOf("before", "after"))
		Expect(must(kit.Read(ctx, super.Client, kit.SuperOf(red, kit.Pod(ns, "before")))()).UID).To(And(Equal(before), Not(Equal(types.UID("")))))
	},
		Entry("in a shared chain", tenancyv1alpha1.IsolationShared, restart),
		Entry("in a chain of its own", tenancyv1alpha1.IsolationDedicated, restart),
		Entry("by a change of its isolation", tenancyv1alpha1.IsolationShared, kit.WithIsolation(tenancyv1alpha1.IsolationDedicated)),
	)
})

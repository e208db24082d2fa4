package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// idle is the time without use after which control planes sleep in specs.
const idle = 10

// sleeping makes a tenant whose control plane sleeps when it is not used.
func sleeping(vc *tenancyv1alpha1.VirtualCluster) {
	vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Sleep: &tenancyv1alpha1.SleepSpec{AfterIdleSeconds: new(int32(idle))}}
}

// shouldSleep waits until the control plane of a tenant sleeps and the syncer
// has closed its watches.
func shouldSleep(ctx context.Context, t *local.Tenant) {
	GinkgoHelper()
	Eventually(kit.Read(ctx, super.Client, t.VC)).WithTimeout(3*kit.Soon + idle*time.Second).Should(And(
		kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse, tenancyv1alpha1.ReasonIdle),
		kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionTrue, tenancyv1alpha1.ReasonAsleep),
		kit.HaveCondition(tenancyv1alpha1.ConditionReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady),
		HaveField("Status.Phase", tenancyv1alpha1.PhaseAsleep)))
}

// shouldWake waits until the control plane of a tenant is awake for a reason,
// and its objects are synced.
func shouldWake(ctx context.Context, t *local.Tenant, reason string) {
	GinkgoHelper()
	Eventually(statesOf(ctx, t)).WithTimeout(2 * kit.Soon).Should(Receive(HaveField("Object", And( // it may soon sleep again
		kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionTrue, reason),
		kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady),
		HaveField("Status.Phase", tenancyv1alpha1.PhaseRunning)))))
}

// annotate sets an annotation of a VirtualCluster.
func annotate(ctx context.Context, t *local.Tenant, key, value string) {
	GinkgoHelper()
	changeVC(ctx, t, func(vc *tenancyv1alpha1.VirtualCluster) { metav1.SetMetaDataAnnotation(&vc.ObjectMeta, key, value) })
}

// changeVC changes the VirtualCluster of a tenant.
func changeVC(ctx context.Context, t *local.Tenant, change func(*tenancyv1alpha1.VirtualCluster)) {
	GinkgoHelper()
	vc := must(kit.Read(ctx, super.Client, t.VC)())
	before := vc.DeepCopy()
	change(vc)
	Expect(super.Client.Patch(ctx, vc, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("A tenant whose control plane sleeps", Ordered, func() {
	const ns = "nap"
	var red *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account, func(o *app.Options) { o.WakeInterval = time.Hour })
		red = tenant(ctx, sleeping)
		kit.Create(ctx, red.Client, kit.Namespace(ns), kit.Pod(ns, "web"), kit.Pod(ns, "job"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(2))
		shouldSleep(ctx, red)
	})

	It("keeps its pods, and its conditions show no failure", func(ctx SpecContext) {
		Consistently(running).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).WithTimeout(3 * time.Second).Should(HaveLen(2))
		vc := must(kit.Read(ctx, super.Client, red.VC)())
		Expect(meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady)).To(BeTrue())
		Expect(meta.IsStatusConditionFalse(vc.Status.Conditions, tenancyv1alpha1.ConditionSynced)).To(BeFalse())
		Expect(syncer.Metric("vc_syncer_breaker_trips_total", map[string]string{})).To(BeZero())
		Expect(syncer.Metric("vc_syncer_tenants", map[string]string{"reason": "Asleep"})).To(BeNumerically("==", 1))
	})

	It("is not woken by a change of a status alone more often than allowed", func(ctx SpecContext) {
		setMessage := func(message string) {
			copied := kit.SuperOf(red, kit.Pod(ns, "web"))
			kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) { s.Message = message })
		}
		setMessage("first")
		shouldWake(ctx, red, tenancyv1alpha1.ReasonWakeNeeded)
		Eventually(kit.Read(ctx, red.Client, kit.Pod(ns, "web"))).Should(HaveField("Status.Message", "first"))
		shouldSleep(ctx, red)
		setMessage("second")
		Consistently(kit.Read(ctx, super.Client, red.VC)).WithTimeout(5 * time.Second).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse, tenancyv1alpha1.ReasonIdle))
	})

	It("is woken when a pod ends, and shows it", func(ctx SpecContext) {
		copied := kit.SuperOf(red, kit.Pod(ns, "job"))
		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })
		shouldWake(ctx, red, tenancyv1alpha1.ReasonWakeNeeded)
		Eventually(kit.Read(ctx, red.Client, kit.Pod(ns, "job"))).Should(HaveField("Status.Phase", corev1.PodFailed))
		Eventually(kit.Read(ctx, red.Client, kit.Pod(ns, "web"))).Should(HaveField("Status.Message", "second"))
	})

	It("wakes for a request alone", func(ctx SpecContext) {
		shouldSleep(ctx, red)
		// The first request may be answered before the control plane has stopped.
		Eventually(func() (*tenancyv1alpha1.VirtualCluster, error) {
			Expect(running(ctx, red.Client, ns)).To(HaveLen(1))
			return kit.Read(ctx, super.Client, red.VC)()
		}).WithPolling(time.Second).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionTrue, tenancyv1alpha1.ReasonConnection))
		shouldWake(ctx, red, tenancyv1alpha1.ReasonConnection)
	})

	It("loses nothing when the syncer restarts, which sees what ended meanwhile", func(ctx SpecContext) {
		shouldSleep(ctx, red)
		restartSyncer()
		Eventually(syncer.Metric).WithArguments("vc_syncer_tenants", map[string]string{"reason": "Asleep"}).
			Should(BeNumerically("==", 1))
		Consistently(running).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).WithTimeout(3 * time.Second).Should(HaveLen(1))
		Expect(must(kit.Read(ctx, super.Client, red.VC)())).To(
			kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse, tenancyv1alpha1.ReasonIdle))
	})

	It("wakes by an admin's annotation", func(ctx SpecContext) {
		shouldSleep(ctx, red)
		annotate(ctx, red, names.WokenAt, time.Now().UTC().Format(time.RFC3339))
		shouldWake(ctx, red, tenancyv1alpha1.ReasonRequested)
	})

	It("is not put to sleep while a watch is open", func(ctx SpecContext) {
		watch, err := red.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(ns))
		Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()
		awake := WithTransform(func(vc *tenancyv1alpha1.VirtualCluster) bool {
			return meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake)
		}, BeTrue())
		Eventually(kit.Read(ctx, super.Client, red.VC)).Should(awake, "the watch has woken it if it slept again")
		Consistently(kit.Read(ctx, super.Client, red.VC)).WithTimeout((idle + 5) * time.Second).Should(awake)
	})

	It("is closed while it is paused, and works afterwards", func(ctx SpecContext) {
		changeVC(ctx, red, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Paused = true })
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(2 * kit.Soon).Should(And(
			kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse, tenancyv1alpha1.ReasonPaused),
			kit.HaveCondition(tenancyv1alpha1.ConditionReady, metav1.ConditionFalse, tenancyv1alpha1.ReasonPaused),
			HaveField("Status.Phase", tenancyv1alpha1.PhasePaused)))
		Eventually(func() error { return kit.Get(ctx, red.Client, kit.Pod(ns, "web")) }).Should(HaveOccurred())
		Consistently(running).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).WithTimeout(2 * time.Second).Should(HaveLen(1))
		changeVC(ctx, red, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Paused = false })
		shouldWake(ctx, red, tenancyv1alpha1.ReasonResumed)
		kit.Create(ctx, red.Client, kit.Pod(ns, "later"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(2))
	})

	It("is deleted while it sleeps", func(ctx SpecContext) {
		shouldSleep(ctx, red)
		removeTenant(ctx, red.VC)
	})
})

var _ = Describe("A tenant whose workloads are scaled to zero while its control plane sleeps", func() {
	It("scales them back to their replicas when it wakes", func(ctx SpecContext) {
		const ns = "zero"
		red := tenant(ctx, sleeping, kit.WithIsolation(tenancyv1alpha1.IsolationDedicated), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane.Sleep.Workloads = tenancyv1alpha1.SleepingWorkloadsScaleToZero
		})
		kit.Create(ctx, red.Client, kit.Namespace(ns), deployment(ns, "web", 3), kit.Pod(ns, "alone"))
		Eventually(running).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).Should(HaveLen(4))
		shouldSleep(ctx, red)
		Expect(running(ctx, super.Client, red.Super(ns))).To(ConsistOf("alone"), "a pod of no workload cannot come back")

		annotate(ctx, red, names.WokenAt, time.Now().UTC().Format(time.RFC3339))
		shouldWake(ctx, red, tenancyv1alpha1.ReasonRequested)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(4)) // which keeps it awake
		web := must(kit.Read(ctx, red.Client, deployment(ns, "web", 0))())
		Expect(*web.Spec.Replicas).To(BeEquivalentTo(3))
		Expect(web.Annotations).NotTo(HaveKey(names.ReplicasAwake))
	})
})

var _ = Describe("The schedule of a control plane", func() {
	It("puts it to sleep in spite of a watch, and wakes it", Label("long"), func(ctx SpecContext) {
		red := tenant(ctx)
		watch, err := red.Client.Watch(ctx, &corev1.PodList{})
		Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()
		changeVC(ctx, red, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Sleep: &tenancyv1alpha1.SleepSpec{
				Schedule: &tenancyv1alpha1.SleepSchedule{Asleep: "* * * * *"},
			}}
		})
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(time.Minute + 2*kit.Soon).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse, tenancyv1alpha1.ReasonSchedule))
		changeVC(ctx, red, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane.Sleep.Schedule = &tenancyv1alpha1.SleepSchedule{Asleep: "0 0 1 1 *", Awake: "* * * * *"}
		})
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(time.Minute + 2*kit.Soon).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionTrue, tenancyv1alpha1.ReasonSchedule))
	})

	DescribeTable("shows in a condition that it cannot be used", func(ctx SpecContext, schedule *tenancyv1alpha1.SleepSchedule, message string) {
		vc := virtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Sleep: &tenancyv1alpha1.SleepSpec{Schedule: schedule}}
		})
		red := kit.Tenant(ctx, super, vc)
		found := must(kit.Read(ctx, super.Client, red.VC)())
		Expect(found).To(kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionTrue, tenancyv1alpha1.ReasonInvalidSchedule))
		Expect(meta.FindStatusCondition(found.Status.Conditions, tenancyv1alpha1.ConditionAwake).Message).To(ContainSubstring(message))
	},
		Entry("because it never comes", &tenancyv1alpha1.SleepSchedule{Asleep: "0 0 31 2 *"}, "never comes"),
		Entry("because its time zone is not known", &tenancyv1alpha1.SleepSchedule{Asleep: "0 0 * * *", TimeZone: "Mars/Olympus"}, "not known"),
	)
})

package integration

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// withQuota is a tenant that may have so much.
func withQuota(limits tenancyv1alpha1.Limits) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Quota = &tenancyv1alpha1.QuotaSpec{Hard: limits} }
}

// limit changes what a tenant may have.
func limit(ctx context.Context, t *local.Tenant, limits tenancyv1alpha1.Limits) {
	GinkgoHelper()
	edit(ctx, super.Client, t.VC.DeepCopy(), withQuota(limits))
}

// quotaOf is what a tenant has of what it may have; empty if nothing is said.
func quotaOf(ctx context.Context, t *local.Tenant) func() string {
	return func() string {
		vc := read(ctx, super.Client, t.VC)()
		if vc.Status.Quota == nil {
			return ""
		}
		return vc.Status.Quota.Summary
	}
}

// below is the number of a tenant's pods in all its namespaces of the super cluster.
func below(ctx context.Context, t *local.Tenant) func() int {
	return func() int {
		n := 0
		for _, ns := range superNamespaces(ctx, t.VC) {
			n += len(pods(ctx, super.Client, ns.Name))
		}
		return n
	}
}

func needing(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount}
	}
}

var _ = Describe("A tenant's quota", Ordered, ContinueOnFailure, func() {
	BeforeAll(func() {
		useSyncer(account, func(o *app.Options) { o.QuotaValidation = true })
	})

	It("holds over all namespaces and for pods of every source (QV-1, QV-2, QV-5)", func(ctx SpecContext) {
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "3"}))
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "job"}, Spec: batchv1.JobSpec{
			Parallelism: new(int32(2)), Completions: new(int32(2)),
			Template: corev1.PodTemplateSpec{Spec: pod("c", "job", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }).Spec},
		}}
		create(ctx, red.Client, namespace("a"), namespace("b"), namespace("c"))
		create(ctx, red.Client, pod("a", "bare"), pod("b", "bare"), deployment("b", "web", 2), job)
		Eventually(below(ctx, red)).Should(Equal(3))
		Consistently(below(ctx, red)).Should(Equal(3))
		Eventually(quotaOf(ctx, red)).Should(Equal("pods 3/3"))

		Expect(red.Client.Delete(ctx, namespace("a"))).To(Succeed())
		shouldVanish(ctx, red.Client, namespace("a"))
		Eventually(below(ctx, red)).Should(Equal(3), "what became free is taken")
	})

	It("tells the tenant what is exceeded, and follows the limit up and down without evicting (QV-11, QV-14)", func(ctx SpecContext) {
		const ns = "shop"
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"requests.cpu": "1"}))
		create(ctx, red.Client, namespace(ns), pod(ns, "first", needing("600m")))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("first"))
		waits := pod(ns, "second", needing("600m"))
		create(ctx, red.Client, waits)
		const why = "QuotaExceeded: cannot create pod due to exceeding quota limit: requests.cpu: used 600m, asked 600m, hard 1"
		Eventually(read(ctx, red.Client, waits)).Should(WithTransform(heldBack, Equal(why)))
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, waits).Should(ConsistOf(why))

		limit(ctx, red, tenancyv1alpha1.Limits{"requests.cpu": "1200m"})
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("first", "second"))
		limit(ctx, red, tenancyv1alpha1.Limits{"requests.cpu": "100m"})
		Eventually(quotaOf(ctx, red)).Should(Equal("requests.cpu 1200m/100m"))
		Consistently(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(2))
		for _, object := range []client.ObjectList{&corev1.NamespaceList{}, &corev1.ConfigMapList{}} {
			Expect(red.Client.List(ctx, object)).To(Succeed())
			Expect(text(object)).NotTo(ContainSubstring("requests.cpu"), "the limits are in the super cluster alone")
		}
	})

	It("counts resized pods, claims of a class, and services of load balancers", func(ctx SpecContext) {
		const ns = "shop"
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{
			"limits.cpu": "1", "small.storageclass.storage.k8s.io/requests.storage": "1Gi", "services.loadbalancers": "0",
		}))
		p := pod(ns, "grows", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{bareLabel: "nowhere"}
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", "600m"), Limits: amounts("cpu", "600m")}
		})
		create(ctx, red.Client, namespace(ns), p)
		shouldExist(ctx, super.Client, superOf(red, p))
		Eventually(func(g Gomega) {
			g.Expect(get(ctx, red.Client, p)).To(Succeed())
			p.Spec.Resources.Limits = amounts("cpu", "1100m")
			g.Expect(red.Client.SubResource("resize").Update(ctx, p)).To(Succeed())
		}).WithContext(ctx).Should(Succeed())
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, p).Should(
			ContainElement("QuotaExceeded: cannot change pod due to exceeding quota limit: limits.cpu: used 0, asked 1100m, hard 1"))

		class := &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: "small", Labels: map[string]string{names.Public: "true"}},
			Provisioner: "example.com/small",
		}
		create(ctx, super.Client, class)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, class)).To(Succeed()) })
		balanced := service(ns, "balanced")
		balanced.Spec.Type = corev1.ServiceTypeLoadBalancer
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "large"}}
		claim.Spec.StorageClassName, claim.Spec.AccessModes = new("small"), []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		create(ctx, red.Client, balanced, claim)
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, balanced).Should(ContainElement(
			"QuotaExceeded: cannot create service due to exceeding quota limit: services.loadbalancers: used 0, asked 1, hard 0"))
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, claim).Should(ContainElement(ContainSubstring("used 0, asked 2Gi, hard 1Gi")))
	})

	It("gives the last slot to one of 20 who race for it, again and again (QV-8, QV-16)", func(ctx SpecContext) {
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "2"}))
		stays := pod("race", "stays")
		create(ctx, red.Client, namespace("race"), stays)
		Eventually(below(ctx, red)).Should(Equal(1))
		for round := range 5 {
			var race sync.WaitGroup
			for i := range 20 {
				race.Go(func() {
					defer GinkgoRecover()
					create(ctx, red.Client, pod("race", fmt.Sprintf("pod-%d-%d", round, i)))
				})
			}
			race.Wait()
			Eventually(below(ctx, red)).Should(Equal(2))
			Eventually(syncer.Metric).WithArguments("vc_syncer_held_objects", map[string]string{"kind": "Pod"}).Should(BeEquivalentTo(19))
			Expect(below(ctx, red)()).To(Equal(2))
			for i := range 20 {
				p := pod("race", fmt.Sprintf("pod-%d-%d", round, i))
				Expect(red.Client.Delete(ctx, p, client.GracePeriodSeconds(0))).To(Succeed())
			}
			Eventually(func(g Gomega) {
				g.Expect(below(ctx, red)()).To(Equal(1))
				g.Expect(syncer.Metric("vc_syncer_held_objects", map[string]string{"kind": "Pod"})).To(BeZero())
			}).Should(Succeed())
		}
	})

	It("is the same after a restart in the middle", func(ctx SpecContext) {
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "10"}))
		dep := deployment("many", "web", 30)
		create(ctx, red.Client, namespace("many"), dep)
		Eventually(below(ctx, red)).Should(BeNumerically(">", 2))
		restartSyncer()
		Eventually(below(ctx, red)).Should(Equal(10))
		Consistently(below(ctx, red)).Should(Equal(10))
		edit(ctx, red.Client, dep, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)) })
		Eventually(quotaOf(ctx, red)).Should(Equal("pods 4/10"))
	})

	It("is not there when it is taken away", func(ctx SpecContext) {
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "0"}))
		waits := pod("free", "waits")
		create(ctx, red.Client, namespace("free"), waits)
		Eventually(read(ctx, red.Client, waits)).Should(WithTransform(heldBack, Not(BeEmpty())))
		edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Quota = nil })
		Eventually(running).WithContext(ctx).WithArguments(red.Client, "free").Should(ConsistOf("waits"))
		Eventually(read(ctx, super.Client, red.VC)).Should(HaveField("Status.Quota", BeNil()))
	})
})

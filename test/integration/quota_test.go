package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// withQuota sets the quota of a tenant.
func withQuota(limits tenancyv1alpha1.Limits) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Quota = &tenancyv1alpha1.QuotaSpec{Hard: limits} }
}

// limit changes the quota of a tenant.
func limit(ctx context.Context, t *local.Tenant, limits tenancyv1alpha1.Limits) {
	GinkgoHelper()
	kit.Edit(ctx, super.Client, t.VC.DeepCopy(), withQuota(limits))
}

// quotaOf returns a function that reads the usage and limits of a tenant; empty
// without a quota.
func quotaOf(ctx context.Context, t *local.Tenant) func() (string, error) {
	return func() (string, error) {
		vc, err := kit.Read(ctx, super.Client, t.VC)()
		if err != nil || vc.Status.Quota == nil {
			return "", err
		}
		return vc.Status.Quota.Summary, nil
	}
}

// below returns a function that counts a tenant's pods in all its namespaces of
// the super cluster.
func below(ctx context.Context, t *local.Tenant) func() (int, error) {
	return func() (int, error) {
		namespaces, err := superNamespaces(ctx, t.VC)
		n := 0
		for i := range namespaces {
			in, failed := pods(ctx, super.Client, namespaces[i].Name)
			n, err = n+len(in), errors.Join(err, failed)
		}
		return n, err
	}
}

func needing(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount}
	}
}

// watchCopies watches the pods of the super cluster during a spec.
func watchCopies(ctx context.Context) *local.Copies {
	GinkgoHelper()
	copies, err := local.WatchCopies(ctx, super.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(copies.Stop()).To(Succeed()) })
	return copies
}

// column returns the value of a column of kubectl get for a VirtualCluster.
func column(ctx context.Context, t *local.Tenant, name string) (any, error) {
	client, err := rest.RESTClientFor(restConfigOf(super.Config))
	if err != nil {
		return nil, err
	}
	table := &metav1.Table{}
	err = client.Get().Resource("virtualclusters").Namespace(t.VC.Namespace).Name(t.VC.Name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Into(table)
	if err != nil {
		return nil, err
	}
	for i, definition := range table.ColumnDefinitions {
		if definition.Name == name {
			return table.Rows[0].Cells[i], nil
		}
	}
	return nil, fmt.Errorf("there is no column %s", name)
}

// restConfigOf returns a configuration for requests for VirtualClusters without
// a typed client.
func restConfigOf(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &tenancyv1alpha1.GroupVersion, "/apis"
	c.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return c
}

var _ = Describe("A tenant's quota", Ordered, ContinueOnFailure, func() {
	BeforeAll(func() {
		useSyncer(account, func(o *app.Options) { o.QuotaValidation = true })
	})

	It("applies across all namespaces and to pods of every source (QV-1, QV-2, QV-5)", func(ctx SpecContext) {
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "3"}))
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "job"}, Spec: batchv1.JobSpec{
			Parallelism: new(int32(2)), Completions: new(int32(2)),
			Template: corev1.PodTemplateSpec{
				Spec: kit.Pod("c", "job", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }).Spec,
			},
		}}
		kit.Create(ctx, red.Client, kit.Namespace("a"), kit.Namespace("b"), kit.Namespace("c"))
		kit.Create(ctx, red.Client, kit.Pod("a", "bare"), kit.Pod("b", "bare"), deployment("b", "web", 2), job)
		Eventually(below(ctx, red)).Should(Equal(3))
		Consistently(below(ctx, red)).Should(Equal(3))
		Eventually(quotaOf(ctx, red)).Should(Equal("pods 3/3"))

		Expect(red.Client.Delete(ctx, kit.Namespace("a"))).To(Succeed())
		// The namespace controller waits before its first attempt, and again for the pod.
		Eventually(kit.Get).WithContext(ctx).WithArguments(red.Client, kit.Namespace("a")).WithTimeout(3 * kit.Soon).
			Should(MatchError(apierrors.IsNotFound, "not found"))
		Eventually(below(ctx, red)).Should(Equal(3), "freed capacity is used")
	})

	It("reports the exceeded limit to the tenant, and follows changes of the limit without evictions (QV-11, QV-14)", func(ctx SpecContext) {
		const ns = "shop"
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"requests.cpu": "1"}))
		kit.Create(ctx, red.Client, kit.Namespace(ns), kit.Pod(ns, "first", needing("600m")))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("first"))
		waits := kit.Pod(ns, "second", needing("600m"))
		kit.Create(ctx, red.Client, waits)
		const why = "QuotaExceeded: cannot create pod due to exceeding quota limit: requests.cpu: used 600m, asked 600m, hard 1"
		Eventually(kit.Read(ctx, red.Client, waits)).Should(WithTransform(heldBack, Equal(why)))
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, waits).Should(ConsistOf(why))

		limit(ctx, red, tenancyv1alpha1.Limits{"requests.cpu": "1200m"})
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("first", "second"))
		limit(ctx, red, tenancyv1alpha1.Limits{"requests.cpu": "100m"})
		Eventually(quotaOf(ctx, red)).Should(Equal("requests.cpu 1200m/100m"))
		Consistently(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(2))
		for _, object := range []client.ObjectList{&corev1.NamespaceList{}, &corev1.ConfigMapList{}} {
			Expect(red.Client.List(ctx, object)).To(Succeed())
			Expect(text(object)).NotTo(ContainSubstring("requests.cpu"), "the limits are in the super cluster only")
		}
	})

	It("counts resized pods, claims of a class, and Services of type LoadBalancer", func(ctx SpecContext) {
		const ns = "shop"
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{
			"limits.cpu": "1", "small.storageclass.storage.k8s.io/requests.storage": "1Gi", "services.loadbalancers": "0",
		}))
		p := kit.Pod(ns, "grows", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{bareLabel: "nowhere"}
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: kit.Amounts("cpu", "600m"), Limits: kit.Amounts("cpu", "600m")}
		})
		kit.Create(ctx, red.Client, kit.Namespace(ns), p)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, p))
		Eventually(func(g Gomega) {
			g.Expect(kit.Get(ctx, red.Client, p)).To(Succeed())
			p.Spec.Resources.Limits = kit.Amounts("cpu", "1100m")
			g.Expect(red.Client.SubResource("resize").Update(ctx, p)).To(Succeed())
		}).WithContext(ctx).Should(Succeed())
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, p).Should(
			ContainElement("QuotaExceeded: cannot change pod due to exceeding quota limit: limits.cpu: used 0, asked 1100m, hard 1"))

		class := &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: "small", Labels: map[string]string{names.Public: "true"}},
			Provisioner: "example.com/small",
		}
		kit.Create(ctx, super.Client, class)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, class)).To(Succeed()) })
		balanced := service(ns, "balanced")
		balanced.Spec.Type = corev1.ServiceTypeLoadBalancer
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "large"}}
		claim.Spec.StorageClassName, claim.Spec.AccessModes = new("small"), []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		kit.Create(ctx, red.Client, balanced, claim)
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, balanced).Should(ContainElement(
			"QuotaExceeded: cannot create service due to exceeding quota limit: services.loadbalancers: used 0, asked 1, hard 0"))
		Eventually(warnings).WithContext(ctx).WithArguments(red.Client, claim).Should(ContainElement(ContainSubstring("used 0, asked 2Gi, hard 1Gi")))
	})

	It("gives the last slot to one of 20 pods that race for it, again and again (QV-8, QV-16)", func(ctx SpecContext) {
		const limit, racers = 2, 20
		rounds := atLength(1000, 25)
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "2"}))
		stays := kit.Pod("race", "stays")
		kit.Create(ctx, red.Client, kit.Namespace("race"), stays)
		copies := watchCopies(ctx)
		Eventually(copies.Now).WithArguments(red).Should(Equal(limit - 1))
		var race sync.WaitGroup
		for i := range racers {
			race.Go(func() {
				defer GinkgoRecover()
				kit.Create(ctx, red.Client, kit.Pod("race", fmt.Sprintf("pod-%d", i)))
			})
		}
		race.Wait()
		denied := map[string]string{"kind": "Pod", "outcome": "rejected"}
		last := ""
		for round := range rounds {
			var winner string
			Eventually(func(g Gomega) {
				all, err := podNames(ctx, super.Client, red.Super("race"))
				g.Expect(err).NotTo(HaveOccurred())
				others := slices.DeleteFunc(all, func(name string) bool { return name == stays.Name })
				g.Expect(others).To(And(HaveLen(1), Not(ContainElement(last))))
				winner = others[0]
			}).Should(Succeed(), "in round %d", round)
			Eventually(syncer.Metric).WithArguments("vc_syncer_pending_objects", denied).Should(BeEquivalentTo(racers - 1))
			// The deletion frees the last slot, for which all waiting pods
			// race, and a new one.
			kit.Create(ctx, red.Client, kit.Pod("race", fmt.Sprintf("pod-%d", racers+round)))
			Expect(red.Client.Delete(ctx, kit.Pod("race", winner), client.GracePeriodSeconds(0))).To(Succeed())
			last = winner
		}
		Expect(copies.Most(red)).To(Equal(limit))
	}, SpecTimeout(atLength(time.Hour, 6*time.Minute)))

	It("is not a webhook or another object that the tenant could delete (QV-4)", func(ctx SpecContext) {
		const ns = "mine"
		before := webhookConfigurations(ctx, super.Client) // of the specs of converted tenants
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "0"}))
		waits := kit.Pod(ns, "waits")
		kit.Create(ctx, red.Client, kit.Namespace(ns), waits)
		Eventually(kit.Read(ctx, red.Client, waits)).Should(WithTransform(heldBack, Not(BeEmpty())))
		Expect(webhookConfigurations(ctx, red.Client)).To(BeEmpty())
		Expect(webhookConfigurations(ctx, super.Client)).To(ConsistOf(before))
		Expect(red.Client.List(ctx, &corev1.ResourceQuotaList{})).To(Succeed(), "the tenant may create quotas of its own")
		own := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "own"}}
		own.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("100")}
		kit.Create(ctx, red.Client, own)
		Expect(red.Client.Delete(ctx, own)).To(Succeed())
		Consistently(below(ctx, red)).Should(BeZero())
	})

	It("is a column of kubectl get vc -o wide", func(ctx SpecContext) {
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "3", "requests.cpu": "2"}))
		kit.Create(ctx, red.Client, kit.Namespace("wide"), kit.Pod("wide", "web", needing("500m")))
		Eventually(column).WithContext(ctx).WithArguments(red, "Quota").Should(Equal("pods 1/3, requests.cpu 500m/2"))
	})

	It("is unaffected by a restart in the middle", func(ctx SpecContext) {
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "10"}))
		dep := deployment("many", "web", 30)
		kit.Create(ctx, red.Client, kit.Namespace("many"), dep)
		Eventually(below(ctx, red)).Should(BeNumerically(">", 2))
		restartSyncer()
		Eventually(below(ctx, red)).Should(Equal(10))
		Consistently(below(ctx, red)).Should(Equal(10))
		kit.Edit(ctx, red.Client, dep, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)) })
		Eventually(quotaOf(ctx, red)).Should(Equal("pods 4/10"))
	})

	It("is not enforced after its removal", func(ctx SpecContext) {
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "0"}))
		waits := kit.Pod("free", "waits")
		kit.Create(ctx, red.Client, kit.Namespace("free"), waits)
		Eventually(kit.Read(ctx, red.Client, waits)).Should(WithTransform(heldBack, Not(BeEmpty())))
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Quota = nil })
		Eventually(running).WithContext(ctx).WithArguments(red.Client, "free").Should(ConsistOf("waits"))
		Eventually(kit.Read(ctx, super.Client, red.VC)).Should(HaveField("Status.Quota", BeNil()))
	})
})

// webhookConfigurations returns the names of all configurations of webhooks.
func webhookConfigurations(ctx context.Context, c client.Client) []string {
	GinkgoHelper()
	var found []string
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.ValidatingWebhookConfigurationList{}, &admissionregistrationv1.MutatingWebhookConfigurationList{},
	} {
		Expect(c.List(ctx, list)).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			found = append(found, item.(client.Object).GetName())
			return nil
		})).To(Succeed())
	}
	return found
}

package escapes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The quota of a converted tenant", Ordered, ContinueOnFailure, func() {
	const ns = "default"
	var (
		mallory *local.Tenant
		// stolen has the token of mallory's service account of the super cluster.
		stolen client.Client
	)
	exceeding := MatchError(ContainSubstring("due to exceeding quota limit"))
	needing := func(name, cpu string) *corev1.Pod {
		return kit.Pod(ns, name, func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"nowhere": "at-all"}
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: kit.Amounts("cpu", cpu), Limits: kit.Amounts("cpu", cpu)}
		})
	}
	has := func(ctx context.Context) func() (string, error) {
		return func() (string, error) {
			vc, err := kit.Read(ctx, super.Client, mallory.VC.DeepCopy())()
			if err != nil || vc.Status.Quota == nil {
				return "", err
			}
			return vc.Status.Quota.Summary, nil
		}
	}
	// ends deletes mallory's pods.
	ends := func(ctx context.Context) {
		GinkgoHelper()
		Expect(mallory.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(ns), client.GracePeriodSeconds(0))).To(Succeed())
		Expect(mallory.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("kube-public"), client.GracePeriodSeconds(0))).To(Succeed())
		// Writes that failed count for a minute.
		Eventually(has(ctx)).WithTimeout(3 * kit.Soon).Should(MatchRegexp(`requests.cpu (0|[0-9]m)/1`))
	}

	BeforeAll(func(ctx SpecContext) {
		startConvertedWebhook(ctx)
		mallory = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerConverted
			vc.Spec.Quota = &tenancyv1alpha1.QuotaSpec{Hard: tenancyv1alpha1.Limits{"requests.cpu": "1", "count/networkpolicies.networking.k8s.io": "1", "configmaps": "6"}}
		})
		Eventually(func() error { return mallory.Client.List(ctx, &corev1.PodList{}) }).Should(Succeed())
		var err error
		stolen, err = local.NewClient(stolenFrom(ctx, mallory))
		Expect(err).NotTo(HaveOccurred())
		Eventually(has(ctx)).Should(ContainSubstring("configmaps 4/6")) // a CA in each namespace
	})

	attack("more CPU than the quota, by small objects of a name that is taken, and by changes that fail", "idea: an object that was not written counts instead of the one that exists", func(ctx SpecContext) {
		kit.Create(ctx, mallory.Client, needing("large", "900m"))
		for range 5 {
			Expect(mallory.Client.Create(ctx, needing("large", "1m"))).NotTo(Succeed())
			Expect(client.NewDryRunClient(mallory.Client).Create(ctx, needing("other", "1m"))).To(Succeed())
			stale := needing("large", "1m")
			stale.ResourceVersion = "1"
			Expect(mallory.Client.SubResource("resize").Update(ctx, stale)).NotTo(Succeed())
			Expect(mallory.Client.Create(ctx, needing("more", "200m"))).To(exceeding)
		}
		ends(ctx)
	})

	attack("more CPU than the quota, by many clients at once in several namespaces", "idea: each apiserver asks before the other's object is there", func(ctx SpecContext) {
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 24 {
			all.Go(func() {
				in := []string{ns, "kube-public"}[i%2]
				for n := range 4 {
					pod := needing(fmt.Sprintf("many-%d-%d", i, n), "300m")
					pod.Namespace = in
					if mallory.Client.Create(ctx, pod) == nil {
						won.Add(1)
					}
				}
			})
		}
		all.Wait()
		Expect(won.Load()).To(BeNumerically("<=", 3))
		Eventually(func() int32 { // an object whose admission took too long counts for a minute
			pod := needing("", "300m")
			pod.GenerateName = "late-"
			if won.Load() < 3 && mallory.Client.Create(ctx, pod) == nil {
				won.Add(1)
			}
			return won.Load()
		}).WithTimeout(3 * kit.Soon).Should(Equal(int32(3)))
		Expect(mallory.Client.Create(ctx, needing("more", "300m"))).To(exceeding)
		ends(ctx)
	})

	attack("more CPU than the quota, by resizing pods at once", "idea: each change is small enough, and all are not", func(ctx SpecContext) {
		for i := range 4 {
			kit.Create(ctx, mallory.Client, needing(fmt.Sprintf("grows-%d", i), "200m"))
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				pod := needing(fmt.Sprintf("grows-%d", i), "200m")
				for _, cpu := range []string{"300m", "400m", "1"} {
					patch := fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"resources":{"requests":{"cpu":%q},"limits":{"cpu":%q}}}]}}`, pod.Spec.Containers[0].Name, cpu, cpu)
					_ = mallory.Client.SubResource("resize").Patch(ctx, pod, client.RawPatch("application/strategic-merge-patch+json", []byte(patch)))
				}
			})
		}
		all.Wait()
		list := &corev1.PodList{}
		Expect(super.Client.List(ctx, list, client.InNamespace(mallory.Super(ns)))).To(Succeed())
		total := int64(0)
		for i := range list.Items {
			total += list.Items[i].Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
		Expect(total).To(And(BeNumerically(">", 800), BeNumerically("<=", 1000)))
		ends(ctx)
	})

	attack("objects that do not count, by their names and labels, also with the stolen token", "idea: what looks like the platform's is not the tenant's", func(ctx SpecContext) {
		for name, c := range map[string]client.Client{mallory.Super(ns): stolen, ns: mallory.Client} {
			for i := range 8 {
				labeled := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprintf("a-%d.%s", i, names.Domain)}}
				if strings.Contains(name, mallory.Key()) {
					labeled.Labels = map[string]string{names.Converted: "other", names.VCName: "other", names.VCNamespace: "other"}
					labeled.Annotations = map[string]string{names.Cluster: "other", names.UID: "other"}
				}
				_ = c.Create(ctx, labeled)
			}
		}
		list := &corev1.ConfigMapList{}
		Expect(super.Client.List(ctx, list, client.MatchingLabels{names.Converted: mallory.Key()})).To(Succeed())
		Expect(list.Items).To(HaveLen(6))
	})
})

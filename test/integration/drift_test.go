package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Behind the syncer's back", Ordered, func() {
	const ns = "drift"
	var (
		red *local.Tenant
		cm  = configMap(ns, "web", map[string]string{"color": "red"})
		svc = service(ns, "web")
		dep = deployment(ns, "web", 2, withConfigMap("web"))
	)

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns), cm, svc, dep)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(2))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, svc))
	})

	uid := func(obj client.Object) types.UID { return obj.GetUID() }

	It("recreates what was deleted in the super cluster", func(ctx SpecContext) {
		for _, obj := range []client.Object{kit.SuperOf(red, cm), kit.SuperOf(red, svc)} {
			kit.ShouldExist(ctx, super.Client, obj)
			was := obj.GetUID()
			Expect(super.Client.Delete(ctx, obj)).To(Succeed())
			Eventually(kit.Read(ctx, super.Client, obj)).Should(WithTransform(uid, And(Not(BeEmpty()), Not(Equal(was)))))
		}
	})

	It("reverts changes in the super cluster, and keeps additions", func(ctx SpecContext) {
		kit.Edit(ctx, super.Client, kit.SuperOf(red, cm), func(cm *corev1.ConfigMap) {
			cm.Data["color"] = "blue"
			cm.Labels["audit.example.com/seen"] = "yes"
		})
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, cm))
		Eventually(down).Should(HaveField("Data", HaveKeyWithValue("color", "red")))
		kit.Edit(ctx, super.Client, kit.SuperOf(red, svc), func(s *corev1.Service) { s.Spec.Selector = map[string]string{"other": "pods"} })
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, svc))).Should(HaveField("Spec.Selector", svc.Spec.Selector))
		p := must(pods(ctx, super.Client, red.Super(ns)))[0]
		kit.Edit(ctx, super.Client, &p, func(p *corev1.Pod) { p.Labels["app.kubernetes.io/name"] = "stolen" })
		Eventually(kit.Read(ctx, super.Client, &p)).Should(HaveField("Labels", HaveKeyWithValue("app.kubernetes.io/name", "web")))
		Consistently(down).Should(HaveField("Labels", HaveKeyWithValue("audit.example.com/seen", "yes")))
	})

	It("restores deleted labels by which the syncer finds its copies", func(ctx SpecContext) {
		p := must(pods(ctx, super.Client, red.Super(ns)))[0]
		for _, obj := range []client.Object{&p, kit.SuperOf(red, svc), kit.SuperOf(red, kit.Namespace(ns))} {
			kit.Edit(ctx, super.Client, obj, func(obj client.Object) { obj.SetLabels(nil) })
			Eventually(kit.Read(ctx, super.Client, obj)).Should(WithTransform(client.Object.GetLabels, HaveKeyWithValue(names.VCName, red.VC.Name)))
		}
		Expect(kit.Get(ctx, red.Client, kit.Pod(ns, p.Name))).To(Succeed())
		Expect(must(kit.Read(ctx, super.Client, &p)()).UID).To(Equal(p.UID))
	})

	It("recognizes its copies by the UID when all other metadata of VirtualCluster is gone", func(ctx SpecContext) {
		p := must(pods(ctx, super.Client, red.Super(ns)))[0]
		for _, obj := range []client.Object{&p, kit.SuperOf(red, svc), kit.SuperOf(red, cm)} {
			kit.ShouldExist(ctx, super.Client, obj)
			was := obj.GetUID()
			kit.Edit(ctx, super.Client, obj, func(obj client.Object) {
				obj.SetLabels(nil)
				obj.SetAnnotations(map[string]string{names.UID: obj.GetAnnotations()[names.UID]})
			})
			Eventually(kit.Read(ctx, super.Client, obj)).Should(And(
				WithTransform(client.Object.GetLabels, HaveKeyWithValue(names.VCName, red.VC.Name)),
				WithTransform(client.Object.GetAnnotations, HaveKeyWithValue(names.Cluster, red.Key())),
				WithTransform(uid, Equal(was))))
		}
		Expect(kit.Get(ctx, red.Client, kit.Pod(ns, p.Name))).To(Succeed())
	})

	It("replaces a pod whose copy was deleted, as if its node had failed", func(ctx SpecContext) {
		victim := must(pods(ctx, super.Client, red.Super(ns)))[0]
		Expect(super.Client.Delete(ctx, &victim)).To(Succeed())
		Eventually(podNames).WithContext(ctx).WithArguments(red.Client, ns).ShouldNot(ContainElement(victim.Name))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(2))
		Eventually(podNames).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).
			Should(ConsistOf(must(podNames(ctx, red.Client, ns))))
	})

	It("restores a status that was overwritten in the tenant", func(ctx SpecContext) {
		p := must(pods(ctx, red.Client, ns))[0]
		kit.SetPodStatus(ctx, red.Client, &p, func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })
		// The ReplicaSet may be faster and replace the pod that seemed to fail;
		// no failed pod is left either way.
		Eventually(func(g Gomega) {
			all, err := pods(ctx, red.Client, ns)
			g.Expect(err).NotTo(HaveOccurred())
			for _, p := range all {
				g.Expect(p.Status.Phase).To(Equal(corev1.PodRunning))
			}
			g.Expect(running(ctx, red.Client, ns)).To(HaveLen(2))
		}).WithContext(ctx).Should(Succeed())
	})

	It("recreates a namespace that was deleted in the super cluster, with its objects", func(ctx SpecContext) {
		down := kit.SuperOf(red, kit.Namespace(ns))
		kit.ShouldExist(ctx, super.Client, down)
		was := down.UID
		Expect(super.Client.Delete(ctx, down)).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, down)).WithTimeout(2 * kit.Soon).
			Should(WithTransform(uid, And(Not(BeEmpty()), Not(Equal(was)))))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, svc))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).WithTimeout(2 * kit.Soon).Should(HaveLen(2))
	})

	It("sends no requests without changes", func(ctx SpecContext) {
		settle(ctx)
		before, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		Consistently(func() (local.Requests, error) {
			now, err := syncer.Requests()
			return now.Since(before), err
		}, 2*kit.Quiet).Should(BeEmpty())
	})
})

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
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
		create(ctx, red.Client, namespace(ns), cm, svc, dep)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(2))
		shouldExist(ctx, super.Client, superOf(red, svc))
	})

	uid := func(obj client.Object) types.UID { return obj.GetUID() }

	It("makes again what was deleted in the super cluster", func(ctx SpecContext) {
		for _, obj := range []client.Object{superOf(red, cm), superOf(red, svc)} {
			shouldExist(ctx, super.Client, obj)
			was := obj.GetUID()
			Expect(super.Client.Delete(ctx, obj)).To(Succeed())
			Eventually(read(ctx, super.Client, obj)).Should(WithTransform(uid, And(Not(BeEmpty()), Not(Equal(was)))))
		}
	})

	It("puts back what was edited in the super cluster, and leaves alone what was added", func(ctx SpecContext) {
		edit(ctx, super.Client, superOf(red, cm), func(cm *corev1.ConfigMap) {
			cm.Data["color"] = "blue"
			cm.Labels["audit.example.com/seen"] = "yes"
		})
		down := read(ctx, super.Client, superOf(red, cm))
		Eventually(down).Should(HaveField("Data", HaveKeyWithValue("color", "red")))
		edit(ctx, super.Client, superOf(red, svc), func(s *corev1.Service) { s.Spec.Selector = map[string]string{"other": "pods"} })
		Eventually(read(ctx, super.Client, superOf(red, svc))).Should(HaveField("Spec.Selector", svc.Spec.Selector))
		p := must(pods(ctx, super.Client, red.Super(ns)))[0]
		edit(ctx, super.Client, &p, func(p *corev1.Pod) { p.Labels["app.kubernetes.io/name"] = "stolen" })
		Eventually(read(ctx, super.Client, &p)).Should(HaveField("Labels", HaveKeyWithValue("app.kubernetes.io/name", "web")))
		Consistently(down).Should(HaveField("Labels", HaveKeyWithValue("audit.example.com/seen", "yes")))
	})

	It("gives labels back that were taken away, by which the syncer finds its own", func(ctx SpecContext) {
		p := must(pods(ctx, super.Client, red.Super(ns)))[0]
		for _, obj := range []client.Object{&p, superOf(red, svc), superOf(red, namespace(ns))} {
			edit(ctx, super.Client, obj, func(obj client.Object) { obj.SetLabels(nil) })
			Eventually(read(ctx, super.Client, obj)).Should(WithTransform(client.Object.GetLabels, HaveKeyWithValue(names.VCName, red.VC.Name)))
		}
		Expect(get(ctx, red.Client, pod(ns, p.Name))).To(Succeed())
		Expect(must(read(ctx, super.Client, &p)()).UID).To(Equal(p.UID))
	})

	It("knows its own by the UID when all else was taken away that says whose they are", func(ctx SpecContext) {
		p := must(pods(ctx, super.Client, red.Super(ns)))[0]
		for _, obj := range []client.Object{&p, superOf(red, svc), superOf(red, cm)} {
			shouldExist(ctx, super.Client, obj)
			was := obj.GetUID()
			edit(ctx, super.Client, obj, func(obj client.Object) {
				obj.SetLabels(nil)
				obj.SetAnnotations(map[string]string{names.UID: obj.GetAnnotations()[names.UID]})
			})
			Eventually(read(ctx, super.Client, obj)).Should(And(
				WithTransform(client.Object.GetLabels, HaveKeyWithValue(names.VCName, red.VC.Name)),
				WithTransform(client.Object.GetAnnotations, HaveKeyWithValue(names.Cluster, red.Key())),
				WithTransform(uid, Equal(was))))
		}
		Expect(get(ctx, red.Client, pod(ns, p.Name))).To(Succeed())
	})

	It("replaces a pod whose copy was deleted, as if its node had failed", func(ctx SpecContext) {
		victim := must(pods(ctx, super.Client, red.Super(ns)))[0]
		Expect(super.Client.Delete(ctx, &victim)).To(Succeed())
		Eventually(podNames).WithContext(ctx).WithArguments(red.Client, ns).ShouldNot(ContainElement(victim.Name))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(2))
		Eventually(podNames).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).
			Should(ConsistOf(must(podNames(ctx, red.Client, ns))))
	})

	It("puts back the status that was overwritten in the tenant", func(ctx SpecContext) {
		p := must(pods(ctx, red.Client, ns))[0]
		p.Status.Phase = corev1.PodFailed
		Expect(red.Client.Status().Update(ctx, &p)).To(Succeed())
		// The ReplicaSet may be quicker and replace the pod that seemed to fail; no failed one is left either way.
		Eventually(func(g Gomega) {
			all, err := pods(ctx, red.Client, ns)
			g.Expect(err).NotTo(HaveOccurred())
			for _, p := range all {
				g.Expect(p.Status.Phase).To(Equal(corev1.PodRunning))
			}
			g.Expect(running(ctx, red.Client, ns)).To(HaveLen(2))
		}).WithContext(ctx).Should(Succeed())
	})

	It("makes again a namespace that was deleted in the super cluster, with what was in it", func(ctx SpecContext) {
		down := superOf(red, namespace(ns))
		shouldExist(ctx, super.Client, down)
		was := down.UID
		Expect(super.Client.Delete(ctx, down)).To(Succeed())
		Eventually(read(ctx, super.Client, down)).WithTimeout(2 * soon).
			Should(WithTransform(uid, And(Not(BeEmpty()), Not(Equal(was)))))
		shouldExist(ctx, super.Client, superOf(red, svc))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).WithTimeout(2 * soon).Should(HaveLen(2))
	})

	It("sends nothing when nothing changed", func(ctx SpecContext) {
		settle(ctx)
		before, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		Consistently(func() (local.Requests, error) {
			now, err := syncer.Requests()
			return now.Since(before), err
		}, 2*quiet).Should(BeEmpty())
	})
})

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Two tenants", Ordered, func() {
	const ns = "same"
	var red, blue *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		red, blue = tenant(ctx), tenant(ctx)
		for _, t := range []*local.Tenant{red, blue} {
			kit.Create(ctx, t.Client, kit.Namespace(ns), configMap(ns, "web", map[string]string{"of": t.Key()}),
				service(ns, "web"), deployment(ns, "web", 2, withConfigMap("web")))
		}
		for _, t := range []*local.Tenant{red, blue} {
			Eventually(running).WithContext(ctx).WithArguments(t.Client, ns).Should(HaveLen(2))
		}
	})

	It("run pods with the same names side by side", func(ctx SpecContext) {
		for _, t := range []*local.Tenant{red, blue} {
			Expect(podNames(ctx, super.Client, t.Super(ns))).To(ConsistOf(must(podNames(ctx, t.Client, ns))))
			down := kit.SuperOf(t, configMap(ns, "web", nil))
			kit.ShouldExist(ctx, super.Client, down)
			Expect(down.Data).To(HaveKeyWithValue("of", t.Key()))
		}
	})

	It("are rejected by each other's apiservers", func(ctx SpecContext) {
		mixed := rest.CopyConfig(blue.Config)
		mixed.CertData, mixed.KeyData = red.Config.CertData, red.Config.KeyData
		intruder, err := local.NewClient(mixed)
		if err == nil {
			err = intruder.List(ctx, &corev1.NamespaceList{})
		}
		Expect(err).To(HaveOccurred())
	})

	It("lose nothing when the other deletes everything", func(ctx SpecContext) {
		kept := must(podNames(ctx, super.Client, blue.Super(ns)))
		Expect(red.Client.Delete(ctx, kit.Namespace(ns))).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, kit.Namespace(ns)))
		Expect(podNames(ctx, super.Client, blue.Super(ns))).To(ConsistOf(kept))
		Expect(running(ctx, blue.Client, ns)).To(ConsistOf(kept))
	})
})

var _ = Describe("An object that the super cluster rejects", Ordered, func() {
	const ns = "limits"
	var red *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, kit.Namespace(ns)))
	})

	It("gets an event without the super cluster's names, delays no other object, and is synced down when it can be", func(ctx SpecContext) {
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: red.Super(ns), Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		}
		kit.Create(ctx, super.Client, quota)
		Eventually(kit.Read(ctx, super.Client, quota)).Should(HaveField("Status.Hard", Not(BeEmpty())))
		waiting := kit.Pod(ns, "waiting")
		kit.Create(ctx, red.Client, waiting)
		Eventually(kit.Rejections(ctx, red, waiting)).Should(ContainElement(ContainSubstring("exceeded quota")))
		for _, message := range must(kit.Rejections(ctx, red, waiting)()) {
			Expect(message).NotTo(ContainSubstring(red.Key()))
		}

		svc := service(ns, "meanwhile")
		kit.Create(ctx, red.Client, svc)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, svc))

		Expect(super.Client.Delete(ctx, quota)).To(Succeed())
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("waiting"))
	})

	It("may be a privileged pod, which gets an event", func(ctx SpecContext) {
		privileged := kit.Pod(ns, "privileged", func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		})
		kit.Create(ctx, red.Client, privileged)
		Eventually(kit.Rejections(ctx, red, privileged)).Should(ContainElement(ContainSubstring("violates PodSecurity")))
		Expect(podNames(ctx, super.Client, red.Super(ns))).NotTo(ContainElement("privileged"))
	})

	It("may be a pod that chooses its node, which gets an event", func(ctx SpecContext) {
		bold := kit.Pod(ns, "bold", func(p *corev1.Pod) { p.Spec.NodeName = "node-1" })
		kit.Create(ctx, red.Client, bold)
		Eventually(kit.Rejections(ctx, red, bold)).Should(ContainElement(ContainSubstring("spec.nodeName")))
		Expect(podNames(ctx, super.Client, red.Super(ns))).NotTo(ContainElement("bold"))
		Expect(podNames(ctx, red.Client, ns)).To(ContainElement("bold"))
	})
})

var _ = Describe("A namespace of the super cluster that belongs to another owner", func() {
	It("is never written to, and an event tells the tenant to choose another name", func(ctx SpecContext) {
		red := tenant(ctx)
		foreign := kit.SuperOf(red, kit.Namespace("taken"))
		foreign.Annotations = map[string]string{"owner": "platform"}
		kit.Create(ctx, super.Client, foreign)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, foreign)).To(Succeed()) })

		ns := kit.Namespace("taken")
		p := kit.Pod("taken", "web")
		kit.Create(ctx, red.Client, ns, p, service("taken", "web"))
		Eventually(kit.Rejections(ctx, red, ns)).Should(ContainElement(ContainSubstring("belongs to another owner")))
		Eventually(kit.Rejections(ctx, red, p)).ShouldNot(BeEmpty())
		Consistently(podNames).WithContext(ctx).WithArguments(super.Client, foreign.Name).Should(BeEmpty())
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, service("taken", "web")))).NotTo(Succeed())
		untouched := must(kit.Read(ctx, super.Client, foreign)())
		Expect(untouched.Annotations).To(HaveKeyWithValue("owner", "platform"))
		Expect(untouched.Labels).NotTo(HaveKey(names.VCName))

		// It is not deleted with the tenant's namespace either.
		Expect(red.Client.Delete(ctx, ns)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, ns)
		Consistently(kit.Read(ctx, super.Client, foreign)).Should(HaveField("DeletionTimestamp", BeNil()))
	})
})

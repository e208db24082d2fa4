package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("An admin's field rewrites", Ordered, func() {
	const ns = "patched"
	var red *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{Patches: []tenancyv1alpha1.SyncPatch{
				{
					Name: "pool", Kinds: []string{"Pod"}, When: "'pool' in self.metadata.?labels.orValue({})",
					Set: []tenancyv1alpha1.FieldExpression{
						{Path: "/spec/nodeSelector/kubernetes.io~1os", Expression: "self.metadata.labels.pool"},
						{Path: "/metadata/labels/tenant", Expression: "tenant.namespace + '.' + tenant.name"},
					},
				},
				{Name: "note", Kinds: []string{"Service"}, JSONPatch: `[{"op": "add", "path": "/metadata/annotations/note", "value": "seen"}]`},
				{
					Name: "broken", Kinds: []string{"ConfigMap"}, When: "self.metadata.name == 'broken'",
					Set: []tenancyv1alpha1.FieldExpression{{Path: "/data/x", Expression: "self.data.missing"}},
				},
				{
					Name: "theft", Kinds: []string{"Secret"},
					JSONPatch: `[{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"},
						{"op": "replace", "path": "/metadata/annotations/tenancy.x-k8s.io~1cluster", "value": "another"}]`,
				},
			}}
		})
		kit.Create(ctx, red.Client, kit.Namespace(ns))
	})

	It("change matching copies, but not the tenant's objects", func(ctx SpecContext) {
		labelled := kit.Pod(ns, "labelled", func(p *corev1.Pod) { p.Labels["pool"] = "linux" })
		plain, svc := kit.Pod(ns, "plain"), service(ns, "web")
		kit.Create(ctx, red.Client, labelled, plain, svc)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("labelled", "plain"))
		copied := must(kit.Read(ctx, super.Client, kit.SuperOf(red, labelled))())
		Expect(copied.Spec.NodeSelector).To(HaveKeyWithValue("kubernetes.io/os", "linux"))
		Expect(copied.Labels).To(HaveKeyWithValue("tenant", red.VC.Namespace+"."+red.VC.Name))
		Expect(must(kit.Read(ctx, super.Client, kit.SuperOf(red, plain))()).Spec.NodeSelector).To(BeEmpty())
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, svc))).Should(HaveField("Annotations", HaveKeyWithValue("note", "seen")))
		own := must(kit.Read(ctx, red.Client, labelled)())
		Expect(own.Spec.NodeSelector).To(BeEmpty())
		Expect(own.Labels).NotTo(HaveKey("tenant"))
	})

	It("keep an object pending, with an event, when one cannot be applied, and no other object", func(ctx SpecContext) {
		user := kit.Pod(ns, "user", withConfigMap("broken"), withConfigMap("sound"))
		broken := configMap(ns, "broken", map[string]string{"a": "b"})
		kit.Create(ctx, red.Client, broken, configMap(ns, "sound", map[string]string{"a": "b"}), user)
		Eventually(kit.Rejections(ctx, red, broken)).Should(ContainElement(ContainSubstring("broken")))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, configMap(ns, "sound", nil)))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, user))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, broken))).NotTo(Succeed())
	})

	It("cannot change the owner of a copy", func(ctx SpecContext) {
		s := secret(ns, "own", map[string]string{"a": "b"})
		kit.Create(ctx, red.Client, s, kit.Pod(ns, "reader", withSecret("own")))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, s))
		Expect(must(kit.Read(ctx, super.Client, kit.SuperOf(red, s))()).Annotations).To(HaveKeyWithValue(names.Cluster, red.Key()))
	})
})

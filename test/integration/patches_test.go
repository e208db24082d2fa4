package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Field rewrites of an admin", Ordered, func() {
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
		create(ctx, red.Client, namespace(ns))
	})

	It("change the copies that they are for, and not the tenant's objects", func(ctx SpecContext) {
		labelled := pod(ns, "labelled", func(p *corev1.Pod) { p.Labels["pool"] = "linux" })
		plain, svc := pod(ns, "plain"), service(ns, "web")
		create(ctx, red.Client, labelled, plain, svc)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("labelled", "plain"))
		copied := must(read(ctx, super.Client, superOf(red, labelled))())
		Expect(copied.Spec.NodeSelector).To(HaveKeyWithValue("kubernetes.io/os", "linux"))
		Expect(copied.Labels).To(HaveKeyWithValue("tenant", red.VC.Namespace+"."+red.VC.Name))
		Expect(must(read(ctx, super.Client, superOf(red, plain))()).Spec.NodeSelector).To(BeEmpty())
		Eventually(read(ctx, super.Client, superOf(red, svc))).Should(HaveField("Annotations", HaveKeyWithValue("note", "seen")))
		own := must(read(ctx, red.Client, labelled)())
		Expect(own.Spec.NodeSelector).To(BeEmpty())
		Expect(own.Labels).NotTo(HaveKey("tenant"))
	})

	It("park the object that one cannot be applied to, with an event, and nothing else", func(ctx SpecContext) {
		user := pod(ns, "user", withConfigMap("broken"), withConfigMap("sound"))
		broken := configMap(ns, "broken", map[string]string{"a": "b"})
		create(ctx, red.Client, broken, configMap(ns, "sound", map[string]string{"a": "b"}), user)
		Eventually(refusals).WithArguments(ctx, red, ns, broken).Should(ContainElement(ContainSubstring("broken")))
		shouldExist(ctx, super.Client, superOf(red, configMap(ns, "sound", nil)))
		shouldExist(ctx, super.Client, superOf(red, user))
		Expect(get(ctx, super.Client, superOf(red, broken))).NotTo(Succeed())
	})

	It("cannot change whose a copy is", func(ctx SpecContext) {
		s := secret(ns, "own", map[string]string{"a": "b"})
		create(ctx, red.Client, s, pod(ns, "reader", withSecret("own")))
		shouldExist(ctx, super.Client, superOf(red, s))
		Expect(must(read(ctx, super.Client, superOf(red, s))()).Annotations).To(HaveKeyWithValue(names.Cluster, red.Key()))
	})
})

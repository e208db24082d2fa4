package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

var _ = Describe("Config maps and secrets that no pod refers to", func() {
	const ns = "unused"

	It("go down if the VirtualCluster says so, and are taken away when it does not any more", func(ctx SpecContext) {
		red := tenant(ctx)
		cm, sec := configMap(ns, "settings", map[string]string{"a": "1"}), secret(ns, "password", map[string]string{"b": "2"})
		used := configMap(ns, "used", map[string]string{"c": "3"})
		create(ctx, red.Client, namespace(ns), cm, sec, used, pod(ns, "web", withConfigMap("used")))
		shouldExist(ctx, super.Client, superOf(red, used))
		Expect(get(ctx, super.Client, superOf(red, cm))).NotTo(Succeed())

		carries := func(ctx context.Context, sync *tenancyv1alpha1.SyncSpec) {
			GinkgoHelper()
			edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Sync = sync })
		}
		carries(ctx, &tenancyv1alpha1.SyncSpec{Kinds: []tenancyv1alpha1.KindSync{
			{Kind: "ConfigMap", Mode: tenancyv1alpha1.SyncAll}, {Kind: "Secret", Mode: tenancyv1alpha1.SyncAll},
		}})
		downCM, downSecret := superOf(red, cm), superOf(red, sec)
		shouldExist(ctx, super.Client, downCM)
		shouldExist(ctx, super.Client, downSecret)
		Expect(downCM.Data).To(HaveKeyWithValue("a", "1"))
		Expect(downSecret.Data).To(HaveKeyWithValue("b", []byte("2")))
		edit(ctx, red.Client, cm, func(cm *corev1.ConfigMap) { cm.Data["a"] = "changed" })
		Eventually(read(ctx, super.Client, downCM)).Should(HaveField("Data", HaveKeyWithValue("a", "changed")))
		late := configMap(ns, "late", map[string]string{"d": "4"})
		create(ctx, red.Client, late)
		shouldExist(ctx, super.Client, superOf(red, late))

		carries(ctx, nil)
		for _, obj := range []client.Object{downCM, downSecret, superOf(red, late)} {
			shouldVanish(ctx, super.Client, obj)
		}
		Expect(get(ctx, super.Client, superOf(red, used))).To(Succeed())
		Expect(get(ctx, red.Client, cm)).To(Succeed())
	})
})

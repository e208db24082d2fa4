package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("ConfigMaps and Secrets to which no pod refers", func() {
	const ns = "unused"

	It("are synced down while the VirtualCluster enables it, and deleted when it does not any more", func(ctx SpecContext) {
		red := tenant(ctx)
		cm, sec := configMap(ns, "settings", map[string]string{"a": "1"}), secret(ns, "password", map[string]string{"b": "2"})
		used := configMap(ns, "used", map[string]string{"c": "3"})
		kit.Create(ctx, red.Client, kit.Namespace(ns), cm, sec, used, kit.Pod(ns, "web", withConfigMap("used")))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, used))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, cm))).NotTo(Succeed())

		carries := func(ctx context.Context, sync *tenancyv1alpha1.SyncSpec) {
			GinkgoHelper()
			kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Sync = sync })
		}
		carries(ctx, &tenancyv1alpha1.SyncSpec{Kinds: []tenancyv1alpha1.KindSync{
			{Kind: "ConfigMap", Mode: tenancyv1alpha1.SyncAll}, {Kind: "Secret", Mode: tenancyv1alpha1.SyncAll},
		}})
		downCM, downSecret := kit.SuperOf(red, cm), kit.SuperOf(red, sec)
		kit.ShouldExist(ctx, super.Client, downCM)
		kit.ShouldExist(ctx, super.Client, downSecret)
		Expect(downCM.Data).To(HaveKeyWithValue("a", "1"))
		Expect(downSecret.Data).To(HaveKeyWithValue("b", []byte("2")))
		kit.Edit(ctx, red.Client, cm, func(cm *corev1.ConfigMap) { cm.Data["a"] = "changed" })
		Eventually(kit.Read(ctx, super.Client, downCM)).Should(HaveField("Data", HaveKeyWithValue("a", "changed")))
		late := configMap(ns, "late", map[string]string{"d": "4"})
		kit.Create(ctx, red.Client, late)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, late))

		carries(ctx, nil)
		for _, obj := range []client.Object{downCM, downSecret, kit.SuperOf(red, late)} {
			kit.ShouldVanish(ctx, super.Client, obj)
		}
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, used))).To(Succeed())
		Expect(kit.Get(ctx, red.Client, cm)).To(Succeed())
	})
})

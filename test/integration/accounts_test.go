package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A ServiceAccount", Ordered, func() {
	const ns = "accounts"
	var (
		red  *local.Tenant
		bots = &corev1.ServiceAccount{
			ObjectMeta:       metav1.ObjectMeta{Namespace: ns, Name: "bots"},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
			Secrets:          []corev1.ObjectReference{{Name: "token"}},
		}
		registry, token = secret(ns, "registry", nil), secret(ns, "token", nil)
	)
	pulls := func(names ...string) gomegatypes.GomegaMatcher {
		refs := make([]corev1.LocalObjectReference, len(names))
		for i, name := range names {
			refs[i].Name = name
		}
		return HaveField("ImagePullSecrets", Equal(refs))
	}

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns), bots, registry, token)
	})

	It("is synced down with its image pull secrets, and without permissions", func(ctx SpecContext) {
		down := kit.SuperOf(red, bots)
		kit.ShouldExist(ctx, super.Client, down)
		Expect(*down).To(pulls("registry"))
		Expect(down.AutomountServiceAccountToken).To(Equal(new(false)))
		Expect(down.Secrets).To(BeEmpty())
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, registry))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, token))).NotTo(Succeed())
	})

	It("is updated, and keeps what the super cluster added", func(ctx SpecContext) {
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, bots))
		kit.Edit(ctx, super.Client, kit.SuperOf(red, bots), func(a *corev1.ServiceAccount) {
			a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "mirror"}}
			a.AutomountServiceAccountToken = nil
		})
		Eventually(down).Should(pulls("mirror", "registry"))
		Eventually(down).Should(HaveField("AutomountServiceAccountToken", new(false)))
		kit.Edit(ctx, red.Client, bots, func(a *corev1.ServiceAccount) { a.ImagePullSecrets = nil })
		Eventually(down).Should(pulls("mirror"))
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, registry))
	})

	It("named default adopts the one that the super cluster created", func(ctx SpecContext) {
		own := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}}
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, own))
		Eventually(down).Should(HaveField("AutomountServiceAccountToken", new(false)))
		kit.Edit(ctx, red.Client, own, func(a *corev1.ServiceAccount) {
			a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		})
		Eventually(down).Should(pulls("registry"))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, registry))
	})
})

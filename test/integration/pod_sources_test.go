package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A pod with projected trust bundles and certificates", func() {
	It("runs without them, as in any cluster that does not have the features", func(ctx SpecContext) {
		const ns = "certified"
		red := tenant(ctx)
		own := corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "own"}}}
		p := kit.Pod(ns, "web", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "trust", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{
					{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: new("super"), Path: "bundle.pem"}},
					{PodCertificate: &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519", KeyPath: "key.pem"}},
					own,
				},
			}}}}
		})
		kit.Create(ctx, red.Client, kit.Namespace(ns), configMap(ns, "own", map[string]string{"ca.pem": "own"}), p)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("web"))

		By("the tenant's apiserver dropping them")
		Expect(sourcesOf(p)).To(Equal([]corev1.VolumeProjection{{}, {}, own}))
		By("the copy having none")
		Expect(sourcesOf(must(kit.Read(ctx, super.Client, kit.SuperOf(red, p))()))).To(Equal(sourcesOf(p)))
	})
})

// sourcesOf returns the sources of the first volume of a pod.
func sourcesOf(p *corev1.Pod) []corev1.VolumeProjection { return p.Spec.Volumes[0].Projected.Sources }

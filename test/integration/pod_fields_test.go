package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// fieldOf returns the value that a kubelet reads for a fieldRef to a label or
// annotation of a pod.
func fieldOf(p *corev1.Pod, path string) string {
	if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
		return p.Annotations[strings.TrimSuffix(key, "']")]
	}
	key := strings.TrimPrefix(path, "metadata.labels['")
	return p.Labels[strings.TrimSuffix(key, "']")]
}

var _ = Describe("The downward API of a pod", func() {
	const ns = "fields"

	It("has the tenant's values, in variables and in files, and updates the files", func(ctx SpecContext) {
		red := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.OpaqueMetaPrefixes = []string{"secret.example.com/"} })
		p := kit.Pod(ns, "web", func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "web", "secret.example.com/team": "x"}
			p.Annotations = map[string]string{"note": `a "note"`, "kubectl.kubernetes.io/restartedAt": "now"}
			item := func(path string) corev1.DownwardAPIVolumeFile {
				return corev1.DownwardAPIVolumeFile{
					Path: strings.NewReplacer("[", "-", "]", "", "'", "", "/", "-").Replace(path), FieldRef: &corev1.ObjectFieldSelector{FieldPath: path},
				}
			}
			p.Spec.Volumes = []corev1.Volume{{Name: "info", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
				Items: []corev1.DownwardAPIVolumeFile{
					item("metadata.namespace"), item("metadata.uid"), item("metadata.labels"), item("metadata.annotations"),
					item("metadata.labels['secret.example.com/team']"), item("metadata.labels['tenancy.x-k8s.io/vcname']"),
				},
			}}}}
		})
		kit.Create(ctx, red.Client, kit.Namespace(ns), p)
		copied := kit.SuperOf(red, p)
		kit.ShouldExist(ctx, super.Client, copied)
		file := func(i int) func() (string, error) {
			return func() (string, error) {
				now, err := kit.Read(ctx, super.Client, copied)()
				return fieldOf(now, now.Spec.Volumes[0].DownwardAPI.Items[i].FieldRef.FieldPath), err
			}
		}
		for i, want := range []string{
			ns, string(p.UID),
			"app=\"web\"\nsecret.example.com/team=\"x\"", "kubectl.kubernetes.io/restartedAt=\"now\"\nnote=\"a \\\"note\\\"\"",
			"x", "",
		} {
			Expect(file(i)()).To(Equal(want))
		}

		kit.Edit(ctx, red.Client, p, func(p *corev1.Pod) {
			p.Labels["tier"], p.Labels["secret.example.com/team"] = "front", "y"
			delete(p.Annotations, "note")
		})
		Eventually(file(2)).Should(Equal("app=\"web\"\nsecret.example.com/team=\"y\"\ntier=\"front\""))
		Eventually(file(3)).Should(Equal(`kubectl.kubernetes.io/restartedAt="now"`))
		Eventually(file(4)).Should(Equal("y"))
	})
})

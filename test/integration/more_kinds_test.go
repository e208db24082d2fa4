package integration

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// podTemplatesSyncer is the variable with the program of testdata/podtemplates.
const podTemplatesSyncer = "VC_PODTEMPLATES_SYNCER"

var _ = Describe("A kind that a program adds", Ordered, func() {
	const ns = "more-kinds"
	var red *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		program := os.Getenv(podTemplatesSyncer)
		if program == "" {
			Skip("set " + podTemplatesSyncer + "; make test-integration does")
		}
		allowSyncer(ctx, rbacv1.PolicyRule{
			APIGroups: []string{corev1.GroupName}, Resources: []string{"podtemplates"},
			Verbs: []string{"list", "watch", "get", "create", "patch", "delete"},
		})
		takeSyncerAway()
		process, err := super.StartSyncerProgram(program, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(process.Stop()).To(Succeed()) })
		red = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy.Limits = map[string]int64{"podtemplates": 1}
		})
		kit.Create(ctx, red.Client, kit.Namespace(ns))
	})

	It("is synced from its creation to its deletion, and has a limit", func(ctx SpecContext) {
		web := podTemplate(ns, "web", "web.example/web:1")
		kit.Create(ctx, red.Client, web)
		down := kit.SuperOf(red, web)
		Eventually(kit.Read(ctx, super.Client, down)).Should(And(
			HaveField("Template.Spec.Containers", ConsistOf(HaveField("Image", "web.example/web:1"))),
			HaveField("Annotations", HaveKeyWithValue(names.UID, string(web.UID))),
		))

		kit.Edit(ctx, red.Client, web, func(p *corev1.PodTemplate) { p.Template.Spec.Containers[0].Image = "web.example/web:2" })
		image := HaveField("Template.Spec.Containers", ConsistOf(HaveField("Image", "web.example/web:2")))
		Eventually(kit.Read(ctx, super.Client, down)).Should(image)
		kit.Edit(ctx, super.Client, down, func(p *corev1.PodTemplate) { p.Template.Spec.Containers[0].Image = "other.example/web" })
		Eventually(kit.Read(ctx, super.Client, down)).Should(image, "a change in the super cluster is reverted")

		beyond := podTemplate(ns, "beyond", "web.example/web:1")
		kit.Create(ctx, red.Client, beyond)
		Eventually(kit.Events(ctx, red, beyond, "LimitExceeded")).ShouldNot(BeEmpty())

		Expect(red.Client.Delete(ctx, web)).To(Succeed())
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, down).Should(MatchError(apierrors.IsNotFound, "not found"))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, beyond))
	})
})

// podTemplate returns a PodTemplate with one container.
func podTemplate(ns, name, image string) *corev1.PodTemplate {
	return &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
		},
	}
}

// allowSyncer gives the syncer a permission, as an admin would, until the
// container of specs ends.
func allowSyncer(ctx context.Context, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "vc-syncer-more-", Labels: map[string]string{rbac.AggregateToSyncer: "true"}},
		Rules:      []rbacv1.PolicyRule{rule},
	}
	kit.Create(ctx, super.Client, role)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, role)).To(Succeed()) })
}

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

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

// The program in testdata/podtemplates is built in a module outside of the
// repository, as its author would build it.
var _ = Describe("A kind that a program adds", Ordered, func() {
	const ns = "more-kinds"
	var red *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		program := buildOutside(ctx, "testdata/podtemplates")
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

// buildOutside builds a program in a temporary module that requires this one, in
// the versions of this one. It uses the build cache of make build.
func buildOutside(ctx context.Context, source string) string {
	GinkgoHelper()
	root, err := filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	dir := kit.TempDir()
	const module = "github.com/virtualcluster/virtualcluster"
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	Expect(err).NotTo(HaveOccurred())
	outside := strings.Replace(string(mod), "module "+module, "module example.com/syncer", 1) +
		"\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	Expect(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(outside), 0o600)).To(Succeed())
	for from, to := range map[string]string{filepath.Join(root, "go.sum"): "go.sum", filepath.Join(source, "main.go"): "main.go"} {
		content, err := os.ReadFile(from)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(dir, to), content, 0o600)).To(Succeed())
	}
	program := filepath.Join(dir, "syncer")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", program, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
	build.Stdout, build.Stderr = GinkgoWriter, GinkgoWriter
	Expect(build.Run()).To(Succeed())
	return program
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

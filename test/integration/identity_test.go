package integration

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A tenant whose data is lost", func() {
	It("keeps what runs for it until an admin confirms the new cluster", func(ctx SpecContext) {
		const ns = "kept"
		elsewhere := startElsewhere(ctx, tempDir())
		red := tenantElsewhere(ctx, elsewhere)
		create(ctx, red.Client, namespace(ns), service(ns, "web"))
		copied := superOf(red, service(ns, "web"))
		shouldExist(ctx, super.Client, copied)
		uid := copied.UID

		By("losing the data, and starting the control plane again without it, while no syncer looks")
		var again *local.SuperCluster
		whileStopped(func() {
			Expect(elsewhere.Stop()).To(Succeed())
			Expect(os.RemoveAll(filepath.Join(elsewhere.Dir, "etcd"))).To(Succeed())
			again = startElsewhere(ctx, elsewhere.Dir)
		})
		Eventually(read(ctx, super.Client, red.VC)).WithTimeout(3 * soon).
			Should(haveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionFalse, tenancyv1alpha1.ReasonIdentityChanged))
		Consistently(read(ctx, super.Client, copied)).WithTimeout(2 * quiet).Should(And(
			HaveField("UID", uid), HaveField("DeletionTimestamp", BeNil())))

		By("confirming it")
		edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Annotations = map[string]string{names.ConfirmIdentity: string(identity(ctx, again))}
		})
		Eventually(read(ctx, super.Client, red.VC)).WithTimeout(2 * soon).
			Should(haveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		shouldVanish(ctx, super.Client, copied)
	})
})

// tempDir is a directory that is removed at the end of the spec.
func tempDir() string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "vc-elsewhere-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	return dir
}

// startElsewhere starts a control plane that is a process of its own.
func startElsewhere(ctx context.Context, dir string) *local.SuperCluster {
	GinkgoHelper()
	elsewhere, err := local.Start(ctx, dir, "--manager=false", "--syncer=false", "--nodes=0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(elsewhere.Stop()).To(Succeed()) })
	return elsewhere
}

// tenantElsewhere makes a tenant of such a control plane.
func tenantElsewhere(ctx context.Context, elsewhere *local.SuperCluster) *local.Tenant {
	GinkgoHelper()
	config, err := os.ReadFile(filepath.Join(elsewhere.Dir, "super.kubeconfig"))
	Expect(err).NotTo(HaveOccurred())
	source := secret("default", filepath.Base(elsewhere.Dir), map[string]string{"kubeconfig": string(config)})
	create(ctx, super.Client, source)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, source)).To(Succeed()) })
	return tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { external(vc, source.Name) })
}

// identity is the UID by which a cluster is told from others.
func identity(ctx context.Context, of *local.SuperCluster) types.UID {
	GinkgoHelper()
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	Expect(get(ctx, of.Client, system)).To(Succeed())
	return system.UID
}

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
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A tenant whose data is lost", func() {
	It("keeps its copies until an admin confirms the new cluster", func(ctx SpecContext) {
		const ns = "kept"
		elsewhere := startElsewhere(ctx, kit.TempDir())
		red := tenantElsewhere(ctx, elsewhere)
		kit.Create(ctx, red.Client, kit.Namespace(ns), service(ns, "web"))
		copied := kit.SuperOf(red, service(ns, "web"))
		kit.ShouldExist(ctx, super.Client, copied)
		uid := copied.UID

		By("losing the data, and restarting the control plane without it, while no syncer runs")
		var again *local.SuperCluster
		whileStopped(func() {
			Expect(elsewhere.Stop()).To(Succeed())
			Expect(os.RemoveAll(filepath.Join(elsewhere.Dir, "etcd"))).To(Succeed())
			again = startElsewhere(ctx, elsewhere.Dir)
		})
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(3 * kit.Soon).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionFalse, tenancyv1alpha1.ReasonIdentityChanged))
		Consistently(kit.Read(ctx, super.Client, copied)).WithTimeout(2 * kit.Quiet).Should(And(
			HaveField("UID", uid), HaveField("DeletionTimestamp", BeNil())))

		By("confirming the new cluster")
		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Annotations = map[string]string{names.ConfirmIdentity: string(identity(ctx, again))}
		})
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(2 * kit.Soon).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		kit.ShouldVanish(ctx, super.Client, copied)
	})
})

// startElsewhere starts a control plane in a process of its own.
func startElsewhere(ctx context.Context, dir string) *local.SuperCluster {
	GinkgoHelper()
	elsewhere, err := local.Start(ctx, dir, "--manager=false", "--syncer=false", "--nodes=0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(elsewhere.Stop()).To(Succeed()) })
	return elsewhere
}

// tenantElsewhere creates a tenant of such a control plane.
func tenantElsewhere(ctx context.Context, elsewhere *local.SuperCluster) *local.Tenant {
	GinkgoHelper()
	config, err := os.ReadFile(filepath.Join(elsewhere.Dir, "super.kubeconfig"))
	Expect(err).NotTo(HaveOccurred())
	source := kit.KubeconfigSecret(ctx, super, filepath.Base(elsewhere.Dir), config)
	return tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { kit.SetExternal(vc, source) })
}

// identity returns the UID that identifies a cluster.
func identity(ctx context.Context, of *local.SuperCluster) types.UID {
	GinkgoHelper()
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	Expect(kit.Get(ctx, of.Client, system)).To(Succeed())
	return system.UID
}

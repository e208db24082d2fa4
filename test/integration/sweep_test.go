package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/orphans"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("What is left of a VirtualCluster that vanished", Ordered, func() {
	var red *local.Tenant // the successor with the same name

	// left creates a namespace of a VirtualCluster with the name of red.
	left := func(ctx context.Context, name string, uid types.UID) *corev1.Namespace {
		GinkgoHelper()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: names.OwnerLabels(red.VC), Annotations: map[string]string{names.VCUID: string(uid)},
		}}
		kit.Create(ctx, super.Client, ns, configMap(name, "data", nil))
		DeferCleanup(func(ctx SpecContext) {
			Expect(super.Client.Delete(ctx, ns)).To(Or(Succeed(), MatchError(apierrors.IsNotFound, "swept")))
		})
		return ns
	}
	exists := func(ctx context.Context, name string) error { return kit.Get(ctx, super.Client, kit.Namespace(name)) }

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace("shop"))
		kit.ShouldExist(ctx, super.Client, kit.Namespace(red.Super("shop")))
	})

	It("is listed and deleted by name, and nothing of a VirtualCluster that exists", func(ctx SpecContext) {
		// The garbage collector deletes a namespace that the syncer has made at the last moment.
		Eventually(func() string { return kubectlVC(ctx, "sweep", "-o", "name").Out }).WithPolling(time.Second).Should(BeEmpty())
		left(ctx, "swept-root", "predecessor")
		left(ctx, "swept-shop", "predecessor")
		left(ctx, "kept-shop", "predecessor")
		unowned := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept-unowned", Labels: map[string]string{"team": "x"}}}
		kit.Create(ctx, super.Client, unowned)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, unowned)).To(Succeed()) })
		listed := kubectlVC(ctx, "sweep")
		Expect(listed).To(succeed())
		Expect(listed.Out).To(And(ContainSubstring("swept-root"), ContainSubstring("swept-shop"), ContainSubstring("kept-shop"),
			Not(ContainSubstring(red.Key())), Not(ContainSubstring(unowned.Name))))
		Expect(kubectlVC(ctx, "sweep", "-o", "name").Out).To(Equal("namespace/kept-shop\nnamespace/swept-root\nnamespace/swept-shop\n"))

		for _, wrong := range []string{red.Key(), red.Super("shop"), unowned.Name, "default", "kube-system", "no-such"} {
			rejected := kubectlVC(ctx, "sweep", "swept-root", wrong)
			Expect(rejected.Code).To(Equal(exit.NotFound), wrong)
			Expect(rejected.Out).To(BeEmpty(), "none is deleted if one is no orphan")
		}
		Expect(kubectlVC(ctx, "sweep", "swept-root", "--dry-run").Out).To(ContainSubstring("(dry run)"))
		Expect(exists(ctx, "swept-root")).To(Succeed())
		Expect(kubectlVC(ctx, "sweep", "swept-root", "swept-shop")).To(succeed())
		for _, name := range []string{"swept-root", "swept-shop"} {
			kit.ShouldVanish(ctx, super.Client, kit.Namespace(name))
		}
		for _, name := range []string{"kept-shop", red.Key(), red.Super("shop"), unowned.Name} {
			Expect(must(kit.Read(ctx, super.Client, kit.Namespace(name))()).DeletionTimestamp).To(BeNil(), name)
		}
	}, SpecTimeout(6*kit.Soon))

	It("is not deleted when it is no longer what was found", func(ctx SpecContext) {
		adopted, replaced := left(ctx, "adopted", "predecessor"), left(ctx, "replaced", "predecessor")
		found := must(orphans.Find(ctx, super.Client))
		Expect(found).To(ContainElements(HaveField("Name", "adopted"), HaveField("Name", "replaced")))
		was := adopted.DeepCopy()
		kit.Edit(ctx, super.Client, adopted, func(ns *corev1.Namespace) { ns.Annotations[names.VCUID] = string(red.VC.UID) })
		Expect(orphans.Delete(ctx, super.Client, was)).To(MatchError(orphans.ErrNoOrphan), "the VirtualCluster has it now")
		older := replaced.DeepCopy()
		older.UID = "another"
		Expect(orphans.Delete(ctx, super.Client, older)).To(MatchError(orphans.ErrNoOrphan), "it is another one with its name")
		// One whose VirtualCluster is created with the same UID, as from a backup.
		restored := replaced.DeepCopy()
		kit.Edit(ctx, super.Client, replaced, func(ns *corev1.Namespace) { ns.Annotations[names.VCUID] = string(red.VC.UID) })
		restored.Annotations[names.VCUID] = string(red.VC.UID)
		Expect(orphans.Delete(ctx, super.Client, restored)).To(MatchError(orphans.ErrNoOrphan))
		for _, name := range []string{"adopted", "replaced"} {
			Expect(must(kit.Read(ctx, super.Client, kit.Namespace(name))()).DeletionTimestamp).To(BeNil(), name)
		}
	})
})

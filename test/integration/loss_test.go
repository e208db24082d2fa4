package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// churn creates and deletes pods in a namespace of its own until the spec ends.
// It ignores errors: the tenant's data may be in the process of being lost.
func churn(ctx context.Context, t *local.Tenant) {
	GinkgoHelper()
	const ns = "churn"
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; working.Err() == nil; i++ {
			_ = t.Client.Create(working, kit.Namespace(ns))
			_ = t.Client.Create(working, kit.Pod(ns, fmt.Sprintf("c%d", i)))
			_ = t.Client.Delete(working, kit.Pod(ns, fmt.Sprintf("c%d", i-5)), client.GracePeriodSeconds(1))
			select {
			case <-working.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	DeferCleanup(func() {
		stop()
		<-done
	})
}

var _ = Describe("A tenant whose data is destroyed under load", func() {
	It("keeps its copies until an admin confirms the new cluster, without affecting others", func(ctx SpecContext) {
		red, copies := withHerd(ctx)
		blue := tenant(ctx)
		kit.Create(ctx, blue.Client, kit.Namespace(pasture))
		for _, t := range []*local.Tenant{red, blue} {
			churn(ctx, t)
			Eventually(running).WithContext(ctx).WithArguments(t.Client, "churn").ShouldNot(BeEmpty())
		}

		By("destroying it while its watches are open")
		Expect(super.DeleteKeys(ctx, red.Key(), "")).To(Succeed())
		kit.Create(ctx, blue.Client, kit.Pod(pasture, "meanwhile"))
		Eventually(running).WithContext(ctx).WithArguments(blue.Client, pasture).Should(ConsistOf("meanwhile"))
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(5 * kit.Soon).
			Should(syncing(metav1.ConditionFalse, tenancyv1alpha1.ReasonIdentityChanged))
		Consistently(copyUIDs).WithContext(ctx).WithArguments(red).WithTimeout(2 * kit.Quiet).Should(Equal(copies))
		Expect(kit.Read(ctx, super.Client, blue.VC)()).To(syncing(metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))

		By("confirming the new cluster")
		system := kit.Namespace(metav1.NamespaceSystem)
		kit.ShouldExist(ctx, red.Client, system)
		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Annotations = map[string]string{names.ConfirmIdentity: string(system.UID)}
		})
		Eventually(copyUIDs).WithContext(ctx).WithArguments(red).WithTimeout(3 * kit.Soon).Should(BeEmpty())
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(2 * kit.Soon).
			Should(syncing(metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	})
})

var _ = Describe("A tenant whose data is restored from a backup", Label("long"), func() {
	It("is synced from there, and keeps its copies until an admin confirms their deletion", func(ctx SpecContext) {
		f := farTenant(ctx)
		red := f.tenant
		Expect(red.Client.List(ctx, &corev1.PodList{})).To(Succeed())

		By("making a backup, and more objects after it")
		f.restart(ctx, func(etcd string) { Expect(os.CopyFS(etcd+".backup", os.DirFS(etcd))).To(Succeed()) })
		kit.Create(ctx, red.Client, kit.Namespace(pasture), configMap(pasture, "web", nil))
		for i := range herd {
			kit.Create(ctx, red.Client, kit.Pod(pasture, fmt.Sprintf("p%02d", i), withConfigMap("web")))
		}
		Eventually(running).WithContext(ctx).WithArguments(red.Client, pasture).WithTimeout(3 * kit.Soon).Should(HaveLen(herd))
		copies := must(copyUIDs(ctx, red))
		f.age(ctx)

		By("restoring it")
		f.restart(ctx, func(etcd string) {
			Expect(os.RemoveAll(etcd)).To(Succeed())
			Expect(os.Rename(etcd+".backup", etcd)).To(Succeed())
		})
		Expect(podNames(ctx, red.Client, pasture)).To(BeEmpty())
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(6 * kit.Soon).
			Should(syncing(metav1.ConditionFalse, tenancyv1alpha1.ReasonRemovalUnconfirmed))
		Consistently(copyUIDs).WithContext(ctx).WithArguments(red).Should(Equal(copies))

		By("confirming the deletion")
		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Annotations = map[string]string{names.ConfirmRemoval: fmt.Sprint(herd)}
		})
		Eventually(copyUIDs).WithContext(ctx).WithArguments(red).WithTimeout(3 * kit.Soon).Should(BeEmpty())
		kit.Create(ctx, red.Client, kit.Namespace("again"), kit.Pod("again", "new"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, "again").WithTimeout(2 * kit.Soon).Should(ConsistOf("new"))
	})
})

// far is a tenant whose control plane runs in another process: that of a tenant
// there, which has no scheduler of its own.
type far struct {
	process *local.SuperCluster
	tenant  *local.Tenant
	there   *tenancyv1alpha1.VirtualCluster
}

func farTenant(ctx context.Context) *far {
	GinkgoHelper()
	f := &far{there: virtualCluster()}
	f.start(ctx, kit.TempDir())
	DeferCleanup(func() { Expect(f.process.Stop()).To(Succeed()) })
	kit.Create(ctx, f.process.Client, f.there)
	there := f.connect(ctx)
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: there.Key(), Name: names.AdminKubeconfigSecret}}
	Expect(kit.Get(ctx, f.process.Client, kubeconfig)).To(Succeed())
	source := kit.KubeconfigSecret(ctx, super, f.there.Name, kubeconfig.Data[names.AdminKubeconfigKey])
	f.tenant = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { kit.SetExternal(vc, source) })
	f.tenant.Client = there.Client
	return f
}

func (f *far) start(ctx context.Context, dir string) {
	GinkgoHelper()
	var err error
	f.process, err = local.Start(ctx, dir, "--syncer=false", "--nodes=0")
	Expect(err).NotTo(HaveOccurred())
}

// connect waits until the control plane serves.
func (f *far) connect(ctx context.Context) *local.Tenant {
	GinkgoHelper()
	Eventually(kit.Read(ctx, f.process.Client, f.there)).WithTimeout(3 * kit.Soon).
		Should(kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	there, err := f.process.Connect(ctx, must(kit.Read(ctx, f.process.Client, f.there)()))
	Expect(err).NotTo(HaveOccurred())
	return there
}

// restart stops the process, modifies etcd's directory, and starts the process
// again.
func (f *far) restart(ctx context.Context, meanwhile func(etcd string)) {
	GinkgoHelper()
	Expect(f.process.Stop()).To(Succeed())
	meanwhile(filepath.Join(f.process.Dir, "etcd-tenants"))
	f.start(ctx, f.process.Dir)
	f.connect(ctx)
	Eventually(f.tenant.Client.List).WithContext(ctx).WithArguments(&corev1.NamespaceList{}).Should(Succeed())
}

// age makes the tenant write more than a start of its control plane does, and
// waits until the syncer has seen it.
func (f *far) age(ctx context.Context) {
	GinkgoHelper()
	ns := kit.Namespace("default")
	for i := range 500 {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"labels": {"age": "%d"}}}`, i))
		Expect(f.tenant.Client.Patch(ctx, ns, patch)).To(Succeed())
	}
	Eventually(kit.Read(ctx, super.Client, kit.SuperOf(f.tenant, ns))).Should(HaveField("Labels", HaveKeyWithValue(names.Label("age"), "499")))
}

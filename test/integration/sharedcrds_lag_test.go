package integration

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/sharedcrds"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// customResourceServer is the variable with upstream's apiserver of custom
// resources.
const customResourceServer = "VC_CUSTOM_RESOURCE_SERVER"

var _ = Describe("A CRD that is shared with a tenant of which one apiserver lags", Label("long"), Ordered, func() {
	const never = 1 << 30
	var (
		first  *local.Tenant // through the apiserver that does not lag
		second *local.LaggingAPIServer
		p      *sharingProcess
		// removing is called before the syncer deletes a CRD.
		removing func()
	)

	// wait runs the syncer until something is done.
	wait := func(ctx context.Context, done func() bool) {
		GinkgoHelper()
		ctx, cancel := context.WithTimeout(ctx, 4*kit.Soon)
		defer cancel()
		p.run(ctx, never, false, done)
		Expect(ctx.Err()).NotTo(HaveOccurred())
	}
	inPhase := func(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition, phase string) func() bool {
		return func() bool { return phaseOf(ctx, first, d.Name) == phase }
	}
	// seen returns the objects that an apiserver serves.
	seen := func(c client.Client, like *unstructured.Unstructured) func(SpecContext) ([]unstructured.Unstructured, error) {
		return func(ctx SpecContext) ([]unstructured.Unstructured, error) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(like.GroupVersionKind())
			err := c.List(ctx, list)
			return list.Items, err
		}
	}

	BeforeAll(func(ctx SpecContext) {
		program := os.Getenv(customResourceServer)
		if program == "" {
			Skip("set " + customResourceServer + "; make test-long does")
		}
		vc := tenant(ctx).VC
		takeSyncerAway()
		cluster := startOtherHost(ctx)
		DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
		var err error
		second, err = local.StartLaggingAPIServer(context.WithoutCancel(ctx), cluster, program, kit.TempDir(), GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = second.Stop() })
		first = &local.Tenant{VC: vc, Config: cluster.Config, Client: interceptor.NewClient(cluster.Client, interceptor.Funcs{
			DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
				removing()
				return c.DeleteAllOf(ctx, obj, opts...)
			},
		})}
		removing = func() {}
		p = newSharingProcess(ctx, first)
	}, NodeTimeout(kit.Longest))

	BeforeEach(func() { removing = func() {} })
	AfterEach(func() { second.CatchUp() })

	It("keeps an object that is created while the copy is removed", func(ctx SpecContext) {
		d := sharedDefinition("mallet", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants))
		share(ctx, d)
		wait(ctx, inPhase(ctx, d, "Copied"))
		late := sharedObject(d, "v1", "late", map[string]any{"color": "red"})
		Eventually(seen(second.Client, late)).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(BeEmpty())

		second.Lag()
		created := make(chan error, 1)
		removing = sync.OnceFunc(func() { created <- second.Client.Create(ctx, late) })
		kit.Edit(ctx, super.Client, d, publishedTo(""))
		wait(ctx, inPhase(ctx, d, ""))
		Expect(created).To(Receive(BeNil()), "the second apiserver does not know that the copy is closed")
		Expect(kit.Get(ctx, first.Client, d.DeepCopy())).To(MatchError(apierrors.IsNotFound, "not found"))
		second.CatchUp()
		Eventually(kit.Get).WithContext(ctx).WithArguments(second.Client, late.DeepCopy()).Should(MatchError(apierrors.IsNotFound, "not served"))

		kit.Edit(ctx, super.Client, d, publishedTo(names.AllTenants))
		wait(ctx, inPhase(ctx, d, "Copied"))
		Eventually(kit.Read(ctx, first.Client, late.DeepCopy())).Should(And(HaveField("GetUID()", late.GetUID()), field("red", "spec", "color")))
	})

	It("keeps the objects that a suspended apiserver creates when it continues", func(ctx SpecContext) {
		d := sharedDefinition("nailer", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants))
		share(ctx, d)
		wait(ctx, inPhase(ctx, d, "Copied"))
		Eventually(seen(second.Client, sharedObject(d, "v1", "", nil))).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(BeEmpty())

		Expect(second.Signal(syscall.SIGSTOP)).To(Succeed())
		DeferCleanup(func() { _ = second.Signal(syscall.SIGCONT) })
		var requests sync.WaitGroup
		accepted := make(chan *unstructured.Unstructured, 50)
		for i := range cap(accepted) {
			u := sharedObject(d, "v1", fmt.Sprintf("late-%d", i), map[string]any{"color": "red"})
			requests.Go(func() {
				if second.Client.Create(ctx, u) == nil {
					accepted <- u
				}
			})
		}
		kit.Edit(ctx, super.Client, d, publishedTo(""))
		wait(ctx, inPhase(ctx, d, ""))
		Expect(second.Signal(syscall.SIGCONT)).To(Succeed())
		requests.Wait()
		close(accepted)
		AddReportEntry("accepted", len(accepted))

		kit.Edit(ctx, super.Client, d, publishedTo(names.AllTenants))
		wait(ctx, inPhase(ctx, d, "Copied"))
		for u := range accepted {
			Eventually(kit.Read(ctx, first.Client, u.DeepCopy())).Should(HaveField("GetUID()", u.GetUID()))
		}
	})

	It("keeps every object readable that is written while the tenant's own comes back", func(ctx SpecContext) {
		own := sharedDefinition("opener", []string{"own"}, []string{"v1alpha1"})
		kit.Create(ctx, first.Client, own)
		kit.ShouldExist(ctx, first.Client, own)
		wanted := own.Spec.DeepCopy()
		kept := sharedObject(own, "v1alpha1", "kept", map[string]any{"own": "mine"})
		createServed(ctx, first, kept)
		d := sharedDefinition("opener", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants))
		share(ctx, d)
		choose(ctx, first, sharedcrds.SystemCRDFirst)
		wait(ctx, inPhase(ctx, d, "Replaced"))
		changed, late := sharedObject(d, "v1", "kept", nil), sharedObject(d, "v1", "late", map[string]any{"color": "red"})
		Eventually(kit.Read(ctx, second.Client, changed)).WithTimeout(2 * kit.Soon).Should(field("mine", "spec", "own"))

		second.Lag()
		choose(ctx, first, sharedcrds.LocalCRDFirst)
		wait(ctx, func() bool {
			found, err := kit.Read(ctx, first.Client, own)()
			return err == nil && equality.Semantic.DeepEqual(&found.Spec, wanted) && phaseOf(ctx, first, d.Name) == ""
		})
		kit.Edit(ctx, second.Client, changed, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"touched": "true"}) })
		kit.Create(ctx, second.Client, late)
		second.CatchUp()
		Eventually(seen(first.Client, kept)).WithContext(ctx).Should(ConsistOf(
			And(HaveField("GetUID()", kept.GetUID()), HaveField("GetLabels()", HaveKey("touched")), HaveField("Object", HaveKeyWithValue("spec", HaveKeyWithValue("own", "mine")))),
			HaveField("GetUID()", late.GetUID()),
		))
		Eventually(seen(second.Client, kept)).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(HaveLen(2))
	})
})

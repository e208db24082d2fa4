package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

func (f *faults) expiredWatch() {
	It("changes on both sides are found after watches have expired", func(ctx SpecContext) {
		const ns, behind, much = "expired", "behind", 60
		// Red is available only at times: its apiserver restarts.
		red, blue := newLoad(ctx, f.red, ns), newLoad(ctx, f.blue, ns)
		blue.start(ctx)
		DeferCleanup(blue.end)
		kit.Create(ctx, f.red.Client, kit.Namespace(behind), service(behind, "deleted-below"), service(behind, "deleted-above"),
			kit.Pod(behind, "ended-below"), kit.Pod(behind, "ended-above"))
		Eventually(running).WithContext(ctx).WithArguments(f.red.Client, behind).Should(HaveLen(2))
		for _, name := range []string{"deleted-below", "deleted-above"} {
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(f.red, service(behind, name)))
		}
		known := resourceVersion(ctx, f.red)

		f.far.Cut()
		f.super.Cut()
		red.changes(ctx, much)
		Expect(f.red.Client.Delete(ctx, service(behind, "deleted-above"))).To(Succeed())
		Expect(f.red.Client.Delete(ctx, kit.Pod(behind, "ended-above"), client.GracePeriodSeconds(0))).To(Succeed())
		Expect(super.Client.Delete(ctx, kit.SuperOf(f.red, service(behind, "deleted-below")))).To(Succeed())
		Expect(super.Client.Delete(ctx, kit.SuperOf(f.red, kit.Pod(behind, "ended-below")))).To(Succeed())
		f.restartElsewhere(ctx)
		red.changes(ctx, much)
		Expect(watchFrom(ctx, f.red, known)).To(MatchError(apierrors.IsResourceExpired, "expired"), "the syncer has to list again")

		Expect(f.far.Resume()).To(Succeed())
		Expect(f.super.Resume()).To(Succeed())
		Eventually(podNames).WithContext(ctx).WithArguments(f.red.Client, behind).WithTimeout(recovery).Should(BeEmpty())
		f.shouldBeWhole(ctx, []*load{red, blue})
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(f.red, service(behind, "deleted-below")))).To(Succeed())
	})
}

// restartElsewhere restarts the process of red's control plane. It keeps its
// data and its port, and starts with an empty watch cache.
func (f *faults) restartElsewhere(ctx context.Context) {
	GinkgoHelper()
	Expect(f.elsewhere.Stop()).To(Succeed())
	again, err := local.Start(ctx, f.elsewhere.Dir, otherHost...)
	Expect(err).NotTo(HaveOccurred())
	f.elsewhere = again
	// An apiserver that has just started briefly rejects Services, since its
	// range of addresses seems full.
	probe := service(metav1.NamespaceDefault, "probe")
	Eventually(f.red.Client.Create).WithContext(ctx).WithArguments(probe).WithTimeout(2 * kit.Soon).Should(Succeed())
	Expect(f.red.Client.Delete(ctx, probe)).To(Succeed())
}

// resourceVersion returns the resource version at which a watch of a tenant's
// pods would start now.
func resourceVersion(ctx context.Context, t *local.Tenant) string {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(t.Client.List(ctx, list)).To(Succeed())
	return list.ResourceVersion
}

// watchFrom returns the first error of a watch of a tenant's pods from a
// resource version.
func watchFrom(ctx context.Context, t *local.Tenant, resourceVersion string) error {
	GinkgoHelper()
	w, err := t.Client.Watch(ctx, &corev1.PodList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: resourceVersion}})
	if err != nil {
		return err
	}
	defer w.Stop()
	event := watch.Event{}
	Eventually(w.ResultChan()).WithContext(ctx).Should(Receive(&event))
	return apierrors.FromObject(event.Object)
}

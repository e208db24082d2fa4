package integration

import (
	"fmt"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A tenant's apiserver that hangs", func() {
	It("is parked with a condition, does not delay others, and catches up when it responds again", func(ctx SpecContext) {
		const ns, total = "hang", 20
		elsewhere := startElsewhere(ctx, kit.TempDir())
		red := tenantElsewhere(ctx, elsewhere)
		blue := tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns), service(ns, "web"))
		kit.Create(ctx, blue.Client, kit.Namespace(ns))
		about := kit.SuperOf(red, service(ns, "web"))
		kit.ShouldExist(ctx, super.Client, about)

		signal := func(s syscall.Signal) { Expect(syscall.Kill(elsewhere.PID(), s)).To(Succeed()) }
		signal(syscall.SIGSTOP)
		stopped := true
		DeferCleanup(func() {
			if stopped {
				signal(syscall.SIGCONT)
			}
		})
		// Each of these must be written to the apiserver that hangs.
		for i := range total {
			kit.Create(ctx, super.Client, eventAbout(about, fmt.Sprintf("told-%02d", i)))
		}
		for i := range total {
			name := fmt.Sprintf("p%02d", i)
			kit.Create(ctx, blue.Client, kit.Pod(ns, name))
			Eventually(running).WithContext(ctx).WithArguments(blue.Client, ns).Should(ContainElement(name))
		}
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(2 * kit.Soon).
			Should(And(
				kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionFalse, tenancyv1alpha1.ReasonUnreachable),
				kit.HaveCondition(tenancyv1alpha1.ConditionSynced, metav1.ConditionUnknown, tenancyv1alpha1.ReasonUnreachable)))

		signal(syscall.SIGCONT)
		stopped = false
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(2 * kit.Soon).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		Eventually(func(g Gomega) {
			events := &corev1.EventList{}
			g.Expect(red.Client.List(ctx, events)).To(Succeed())
			for i := range total {
				g.Expect(events.Items).To(ContainElement(HaveField("Name", fmt.Sprintf("told-%02d", i))))
			}
		}).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(Succeed())
	})
})

// eventAbout returns an event of the super cluster.
func eventAbout(obj client.Object, name string) *corev1.Event {
	GinkgoHelper()
	gvk, err := apiutil.GVKForObject(obj, super.Client.Scheme())
	Expect(err).NotTo(HaveOccurred())
	about := corev1.ObjectReference{Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID()}
	about.APIVersion, about.Kind = gvk.ToAPIVersionAndKind()
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: name},
		InvolvedObject: about,
		Reason:         "Told",
		Message:        "about " + obj.GetNamespace(),
		Type:           corev1.EventTypeNormal,
		Count:          1,
	}
}

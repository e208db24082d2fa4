package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A move to another store that does not go as planned", Label("long"), Ordered, func() {
	var (
		super  *kit.Site
		second *gexec.Session
		red    *movedTenant
	)

	// undisturbed checks that the tenant is served from its old store, and has lost
	// nothing, while a move is tried.
	undisturbed := func(ctx context.Context, try func()) {
		GinkgoHelper()
		writing := startWriter(ctx, red.client, fmt.Sprintf("w%d", time.Now().UnixNano()))
		DeferCleanup(writing.stop)
		try()
		Expect(kit.Get(ctx, super.Client, red.plane)).To(Succeed())
		Expect(red.plane.Status.Store).To(Equal("default"))
		acknowledged := writing.written()
		Eventually(writing.written).WithTimeout(moveTime).Should(BeNumerically(">", acknowledged+5))
		red.ask(ctx, "default")
		red.arrives(ctx, "default")
		writing.check(ctx, red.client)
	}
	BeforeAll(func(ctx SpecContext) {
		super = kit.StartSite(ctx)
		for _, name := range []string{"host-a", "host-b"} {
			super.StartReplica(ctx, name)
		}
		red = newMovedTenant(ctx, super)
		second = super.AddStore(ctx, "second")
		fillTenant(ctx, red.client, 20)
	}, NodeTimeout(20*time.Minute))

	It("is refused by a store that does not respond", func(ctx SpecContext) {
		DeferCleanup(func() { second.Signal(syscall.SIGCONT) })
		second.Signal(syscall.SIGSTOP)
		listing := kit.StartLister(ctx, red.client)
		DeferCleanup(listing.Stop)
		undisturbed(ctx, func() {
			red.ask(ctx, "second")
			Eventually(kit.Read(ctx, super.Client, red.vc)).WithTimeout(2 * moveTime).Should(Or(
				kit.HaveCondition(tenancyv1alpha1.ConditionMoved, metav1.ConditionFalse, tenancyv1alpha1.ReasonMoveFailed),
				kit.HaveCondition(tenancyv1alpha1.ConditionMoved, metav1.ConditionFalse, tenancyv1alpha1.ReasonNoStore))) // it was checked meanwhile
		})
		listing.Stop()
		Expect(listing.Failures()).To(BeEmpty())
		second.Signal(syscall.SIGCONT)
	}, SpecTimeout(20*time.Minute))

	It("is refused by a store without the room for it, before the control plane is stopped", func(ctx SpecContext) {
		const number, size = 60, 500 << 10 // the copy is estimated to need twice that
		large := corev1.ConfigMap{Data: map[string]string{"data": strings.Repeat("x", size)}}
		for i := range number {
			large.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i)}
			_, err := red.client.CoreV1().ConfigMaps("kube-public").Create(ctx, &large, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		super.AddLimitedStore(ctx, "limited", resource.MustParse("64Mi"))
		undisturbed(ctx, func() {
			red.ask(ctx, "limited")
			Eventually(func() string { return red.message(ctx, tenancyv1alpha1.ReasonStoreFull) }).WithTimeout(moveTime).Should(
				MatchRegexp(`ControlPlaneStore limited has no room: it takes \d+ MiB more, and the move needs \d+ MiB`))
			Expect(kit.Get(ctx, super.Client, red.plane)).To(Succeed())
			Expect(red.plane.Status.Attempt).To(BeZero(), "it was not stopped")
		})
		Expect(red.client.CoreV1().ConfigMaps("kube-public").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
	}, SpecTimeout(20*time.Minute))

	It("ends when the store is full, although it should have room", func(ctx SpecContext) {
		large := corev1.ConfigMap{Data: map[string]string{"data": strings.Repeat("x", 500<<10)}}
		for i := range 16 {
			large.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i)}
			_, err := red.client.CoreV1().ConfigMaps("kube-public").Create(ctx, &large, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		super.AddStore(ctx, "small", "--quota-backend-bytes=8388608", "--backend-batch-limit=1") // it knows its size as of its last commit
		undisturbed(ctx, func() {
			red.ask(ctx, "small")
			Expect(red.message(ctx, tenancyv1alpha1.ReasonStoreFull)).To(ContainSubstring("ControlPlaneStore small has no room"))
		})
		Expect(red.client.CoreV1().ConfigMaps("kube-public").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
	}, SpecTimeout(20*time.Minute))

	It("is cancelled while the control plane is stopped", func(ctx SpecContext) {
		DeferCleanup(func() { second.Signal(syscall.SIGCONT) })
		undisturbed(ctx, func() {
			red.hangs(ctx, second)
			red.ask(ctx, "default")
			Eventually(func() (string, error) {
				err := kit.Get(ctx, super.Client, red.plane)
				return red.plane.Spec.Store, err
			}).WithTimeout(moveTime).Should(Equal("default"))
			second.Signal(syscall.SIGCONT)
			red.reaches(ctx, func(s tenancyv1alpha1.HostedControlPlaneStatus) bool { return s.Move == nil })
		})
	}, SpecTimeout(20*time.Minute))

	It("ends elsewhere if the spec names another store meanwhile", func(ctx SpecContext) {
		super.AddStore(ctx, "third")
		writing := startWriter(ctx, red.client, "elsewhere")
		DeferCleanup(writing.stop)
		red.ask(ctx, "second")
		red.reaches(ctx, isStopped)
		red.ask(ctx, "third")
		red.arrives(ctx, "third")
		writing.check(ctx, red.client)

		By("deleting what it has left, in time")
		Expect(red.plane.Status.Remainders).NotTo(BeEmpty())
		before := red.plane.DeepCopy()
		for i := range red.plane.Status.Remainders { // two minutes are over
			red.plane.Status.Remainders[i].Since = metav1.NewTime(time.Now().Add(-time.Hour))
		}
		Expect(super.Client.Status().Patch(ctx, red.plane, client.MergeFrom(before))).To(Succeed())
		for _, left := range []string{"default", "second"} {
			Eventually(super.StoredKeys(ctx, left, red.plane.Namespace)).WithTimeout(moveTime).Should(BeZero(), left)
		}
		Expect(super.StoredKeys(ctx, "third", red.plane.Namespace)()).To(BeNumerically(">", 100))
		Eventually(kit.Read(ctx, super.Client, red.plane)).WithTimeout(moveTime).Should(HaveField("Status.Remainders", BeEmpty()))
		_, err := red.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "object-0", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		red.ask(ctx, "default")
		red.arrives(ctx, "default")
	}, SpecTimeout(20*time.Minute))

	It("ends with the deletion of the tenant at each phase, which leaves nothing", func(ctx SpecContext) {
		var work sync.WaitGroup
		defer work.Wait()
		for _, each := range []struct {
			name  string
			phase func(tenancyv1alpha1.HostedControlPlaneStatus) bool
		}{{"prepared", isPrepared}, {"stopped", isStopped}, {"switched", isSwitched}, {"moved", hasRemainders}} {
			blue := newMovedTenant(ctx, super, func(vc *tenancyv1alpha1.VirtualCluster) {
				vc.Name += "-" + each.name
				vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Store: "default"}
			})
			work.Go(func() {
				defer GinkgoRecover()
				fillTenant(ctx, blue.client, 50)
				blue.ask(ctx, "second")
				blue.reaches(ctx, each.phase)
				Expect(super.Client.Delete(ctx, blue.vc)).To(Succeed())
				Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, blue.vc).WithTimeout(4*moveTime).Should(
					MatchError(apierrors.IsNotFound, "not found"), each.name)
				for _, store := range []string{"default", "second"} {
					Expect(super.StoredKeys(ctx, store, blue.plane.Namespace)()).To(BeZero(), "%s when it was %s", store, each.name)
				}
			})
		}
	}, SpecTimeout(20*time.Minute))
})

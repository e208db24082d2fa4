package integration

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// moveObjects is the environment variable with the number of objects that are
// moved; 100 by default.
const moveObjects = "VC_MOVE_OBJECTS"

var _ = Describe("A tenant that is moved to another store", Ordered, func() {
	const later = moveTime
	var (
		super    *kit.Site
		second   *gexec.Session
		replicas = map[string]*kit.HostReplica{}
		red      *movedTenant
		tenants  kubernetes.Interface
		number   = 100
	)

	BeforeAll(func(ctx SpecContext) {
		if given := os.Getenv(moveObjects); given != "" {
			var err error
			number, err = strconv.Atoi(given)
			Expect(err).NotTo(HaveOccurred())
		}
		super = kit.StartSite(ctx)
		for _, name := range []string{"host-a", "host-b"} {
			replicas[name] = super.StartReplica(ctx, name)
		}
		red = newMovedTenant(ctx, super)
		tenants = red.client
		second = super.AddStore(ctx, "second")
		fillTenant(ctx, tenants, number)
	}, NodeTimeout(kit.Longest))

	It("keeps each acknowledged write, and its clients list again", func(ctx SpecContext) {
		configMaps := tenants.CoreV1().ConfigMaps(metav1.NamespaceDefault)
		followed := startInformer(ctx, tenants)
		before, err := configMaps.List(ctx, metav1.ListOptions{Limit: 10})
		Expect(err).NotTo(HaveOccurred())
		Expect(before.Continue).NotTo(BeEmpty())
		kept, err := configMaps.Get(ctx, "object-0", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		writing := startWriter(ctx, tenants, "first")
		DeferCleanup(writing.stop)
		listing := kit.StartLister(ctx, tenants)
		DeferCleanup(listing.Stop)
		Eventually(writing.written).WithTimeout(later).Should(BeNumerically(">", 10))

		red.ask(ctx, "second")
		red.reaches(ctx, isStopped)
		red.arrives(ctx, "second")
		acknowledged := writing.written()
		Eventually(writing.written).WithTimeout(later).Should(BeNumerically(">", acknowledged+10))
		writing.check(ctx, tenants)
		listing.Stop()
		AddReportEntry("move: objects, longest gap between lists, failed lists, failed writes",
			[]any{number, listing.Gap().String(), len(listing.Failures()), writing.failures})

		By("seeing the same objects")
		again, err := configMaps.Get(ctx, "object-0", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.UID).To(Equal(kept.UID))
		Expect(again.Data).To(Equal(kept.Data))
		all, err := configMaps.List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() int { return len(followed.GetStore().List()) }).WithTimeout(later).Should(Equal(len(all.Items)))
		for i := range all.Items {
			_, exists, err := followed.GetStore().Get(&all.Items[i])
			Expect(err).NotTo(HaveOccurred())
			Expect(exists).To(BeTrue(), all.Items[i].Name)
			Expect(followed.deleted(all.Items[i].Name)).To(BeFalse(), "%s was never deleted", all.Items[i].Name)
		}

		By("expiring resource versions of the old store")
		_, err = configMaps.List(ctx, metav1.ListOptions{
			ResourceVersion: before.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
		Expect(err).To(MatchError(apierrors.IsResourceExpired, "expired"))
		_, err = configMaps.List(ctx, metav1.ListOptions{Limit: 10, Continue: before.Continue})
		Expect(err).To(MatchError(apierrors.IsResourceExpired, "expired"))
		watching, err := configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: before.ResourceVersion})
		if err == nil {
			defer watching.Stop()
			var first watch.Event
			Eventually(watching.ResultChan()).Should(Receive(&first))
			Expect(first.Type).To(Equal(watch.Error))
			err = apierrors.FromObject(first.Object)
		}
		Expect(err).To(Or(MatchError(apierrors.IsResourceExpired, "expired"), MatchError(apierrors.IsGone, "gone")))
	}, SpecTimeout(kit.Longest))

	It("stays where it is if the store does not take it", func(ctx SpecContext) {
		listing := kit.StartLister(ctx, tenants)
		DeferCleanup(listing.Stop)
		red.ask(ctx, "nowhere")
		Expect(red.message(ctx, tenancyv1alpha1.ReasonNoStore)).To(ContainSubstring("ControlPlaneStore nowhere does not exist: the data stays in second"))
		store := &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		kit.Edit(ctx, super.Client, store, func(s *tenancyv1alpha1.ControlPlaneStore) { s.Spec.Unschedulable = true })
		red.ask(ctx, "default")
		Eventually(func() string { return red.message(ctx, tenancyv1alpha1.ReasonNoStore) }).Should(ContainSubstring("is unschedulable"))
		red.ask(ctx, "second")
		red.arrives(ctx, "second")
		kit.Edit(ctx, super.Client, store, func(s *tenancyv1alpha1.ControlPlaneStore) { s.Spec.Unschedulable = false })
		listing.Stop()
		Expect(listing.Failures()).To(BeEmpty())
	}, SpecTimeout(kit.Longest))

	It("is served from the old store if the new one hangs during the copy", Label("long"), func(ctx SpecContext) {
		red.ask(ctx, "default")
		red.arrives(ctx, "default")
		writing := startWriter(ctx, tenants, "hang")
		DeferCleanup(writing.stop)
		DeferCleanup(func() { second.Signal(syscall.SIGCONT) })
		red.hangs(ctx, second)
		Expect(red.message(ctx, tenancyv1alpha1.ReasonMoveFailed)).To(ContainSubstring("is retried"))
		acknowledged := writing.written()
		Eventually(writing.written).WithTimeout(later).Should(BeNumerically(">", acknowledged+10))
		Expect(kit.Get(ctx, super.Client, red.plane)).To(Succeed())
		Expect(red.plane.Status.Store).To(Equal("default"))
		red.ask(ctx, "default")
		second.Signal(syscall.SIGCONT)
		red.arrives(ctx, "default")
		writing.check(ctx, tenants)
	}, SpecTimeout(20*time.Minute))

	It("arrives, whenever the replica that moves it is killed", Label("long"), func(ctx SpecContext) {
		late := func(s tenancyv1alpha1.HostedControlPlaneStatus) bool {
			return isStopped(s) && time.Since(s.Move.StartTime.Time) > 2*time.Second // of which it has whole ones
		}
		phases := map[string]func(tenancyv1alpha1.HostedControlPlaneStatus) bool{
			"when the control plane is stopped": isStopped, "after the switch": isSwitched,
		}
		if atLength(true, false) {
			phases["when the store is prepared"] = func(s tenancyv1alpha1.HostedControlPlaneStatus) bool {
				return s.Move == nil && meta.IsStatusConditionFalse(s.Conditions, tenancyv1alpha1.ConditionMoved)
			}
			phases["a moment later"] = func(s tenancyv1alpha1.HostedControlPlaneStatus) bool { return late(s) || isSwitched(s) }
		}
		i := 0
		for phase, reached := range phases {
			By(phase)
			i++
			writing := startWriter(ctx, tenants, fmt.Sprintf("kill-%d", i))
			DeferCleanup(writing.stop)
			Eventually(writing.written).WithTimeout(later).Should(BeNumerically(">", 10))
			to := red.other()
			red.ask(ctx, to)
			red.reaches(ctx, reached)
			mover := red.plane.Status.Host
			killed := replicas[mover]
			Expect(killed).NotTo(BeNil(), mover)
			delete(replicas, mover)
			super.Service.Remove(killed.Address)
			killed.Kill().Wait(kit.Soon)
			red.arrives(ctx, to)
			acknowledged := writing.written()
			Eventually(writing.written).WithTimeout(later).Should(BeNumerically(">", acknowledged+10))
			writing.check(ctx, tenants)
			name := fmt.Sprintf("host-%d", i)
			replicas[name] = super.StartReplica(ctx, name)
		}
	}, SpecTimeout(20*time.Minute))

	It("leaves data behind if its object is removed by force, which is reported, and deleted when told", Label("long"), func(ctx SpecContext) {
		blue := kit.VirtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Provisioner = ""
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Store: "second"}
		})
		kit.Create(ctx, super.Client, blue)
		Eventually(kit.Read(ctx, super.Client, blue)).WithTimeout(later).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		Expect(kit.Get(ctx, super.Client, blue)).To(Succeed())
		name := blue.Status.ClusterNamespace
		store := &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: "second"}}
		orphans := func() (*tenancyv1alpha1.StoreOrphans, error) {
			err := kit.Get(ctx, super.Client, store)
			return store.Status.Orphans, err
		}
		remove := func(names ...string) {
			GinkgoHelper()
			kit.Edit(ctx, super.Client, store, func(s *tenancyv1alpha1.ControlPlaneStore) { s.Spec.DeleteOrphans = names })
		}

		By("keeping the data of a control plane that exists")
		remove(name, red.plane.Namespace)
		Consistently(orphans, "5s").Should(BeNil())
		Expect(kit.Read(ctx, super.Client, blue)()).To(
			kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		_, err := tenants.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "object-0", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		By("reporting that of one that does not")
		remove()
		for name, each := range replicas { // nothing deletes the data
			super.Service.Remove(each.Address)
			each.Kill().Wait(kit.Soon)
			delete(replicas, name)
		}
		Expect(super.Client.Delete(ctx, blue)).To(Succeed())
		left := &tenancyv1alpha1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: red.plane.Name}}
		Eventually(func() error {
			if err := kit.Get(ctx, super.Client, left); err != nil {
				return client.IgnoreNotFound(err)
			}
			before := left.DeepCopy()
			left.Finalizers = nil
			return client.IgnoreNotFound(super.Client.Patch(ctx, left, client.MergeFrom(before)))
		}).WithTimeout(later).Should(Succeed())
		kit.ShouldVanish(ctx, super.Client, left)
		replicas["host-last"] = super.StartReplica(ctx, "host-last")
		Eventually(orphans).WithTimeout(2 * later).Should(HaveField("Names", ContainElement(name)))
		Expect(store.Status.Orphans.Bytes).To(BeNumerically(">", 1000))

		By("deleting it when told")
		remove(name)
		Eventually(orphans).WithTimeout(2 * later).Should(BeNil())
	}, SpecTimeout(20*time.Minute))
})

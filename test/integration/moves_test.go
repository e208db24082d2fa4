package integration

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// moveObjects is the environment variable with the number of objects that are
// moved; 100 by default.
const moveObjects = "VC_MOVE_OBJECTS"

// writer creates and deletes ConfigMaps all the time, and remembers what was
// acknowledged.
type writer struct {
	stop func()

	mu       sync.Mutex
	failures int
	exists   map[string]bool // false for deleted ones
	unsure   map[string]bool // whose last request has failed
}

func startWriter(ctx context.Context, c kubernetes.Interface, prefix string) *writer {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &writer{exists: map[string]bool{}, unsure: map[string]bool{}}
	var work sync.WaitGroup
	configMaps := c.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	work.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprintf("%s-%d", prefix, i)
			_, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			w.record(name, true, err)
			if i%3 == 2 {
				gone := fmt.Sprintf("%s-%d", prefix, i-1)
				w.record(gone, false, configMaps.Delete(ctx, gone, metav1.DeleteOptions{}))
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	w.stop = sync.OnceFunc(func() {
		cancel()
		work.Wait()
	})
	return w
}

func (w *writer) record(name string, exists bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failures++
		w.unsure[name] = true
		return
	}
	w.exists[name] = exists
}

// written returns how many writes were acknowledged.
func (w *writer) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.exists)
}

// check compares what was acknowledged with what there is.
func (w *writer) check(ctx context.Context, c kubernetes.Interface) {
	GinkgoHelper()
	w.stop()
	var there []string
	Eventually(func() error {
		list, err := c.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		there = nil
		for i := range list.Items {
			there = append(there, list.Items[i].Name)
		}
		return err
	}).WithTimeout(6 * kit.Soon).Should(Succeed())
	slices.Sort(there)
	for name, exists := range w.exists {
		if w.unsure[name] {
			continue
		}
		_, found := slices.BinarySearch(there, name)
		Expect(found).To(Equal(exists), "%s was acknowledged", name)
	}
}

// fillTenant creates ConfigMaps, eight at a time.
func fillTenant(ctx context.Context, c kubernetes.Interface, number int) {
	GinkgoHelper()
	var work sync.WaitGroup
	for part := range 8 {
		work.Go(func() {
			defer GinkgoRecover()
			for i := part; i < number; i += 8 {
				object := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: "object-" + strconv.Itoa(i)}, Data: map[string]string{"data": strings.Repeat("x", 1000)},
				}
				Eventually(func() error {
					_, err := c.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{})
					return client.IgnoreAlreadyExists(err)
				}).WithTimeout(6 * kit.Soon).Should(Succeed())
			}
		})
	}
	work.Wait()
}

// informed is an informer of ConfigMaps, with the names whose deletion it has
// seen.
type informed struct {
	cache.SharedIndexInformer

	mu   sync.Mutex
	gone map[string]bool
}

func startInformer(ctx context.Context, c kubernetes.Interface) *informed {
	GinkgoHelper()
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(metav1.NamespaceDefault))
	i := &informed{SharedIndexInformer: factory.Core().V1().ConfigMaps().Informer(), gone: map[string]bool{}}
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.gone[key] = true
	}})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	factory.Start(running.Done())
	factory.WaitForCacheSync(ctx.Done())
	return i
}

// deleted returns whether a deletion was seen.
func (i *informed) deleted(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.gone[metav1.NamespaceDefault+"/"+name]
}

var _ = Describe("A tenant that is moved to another store", Ordered, func() {
	const later = 6 * kit.Soon
	var (
		super    *kit.Site
		second   *gexec.Session
		replicas = map[string]*kit.HostReplica{}
		red      = kit.VirtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "" })
		plane    = &tenancyv1alpha1.HostedControlPlane{}
		tenants  kubernetes.Interface
		number   = 100
	)

	ask := func(ctx context.Context, store string) {
		GinkgoHelper()
		kit.Edit(ctx, super.Client, red, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Store: store}
		})
	}
	// arrives waits until the data is in a store, and the control plane serves.
	arrives := func(ctx context.Context, store string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			g.Expect(kit.Get(ctx, super.Client, plane)).To(Succeed())
			g.Expect(plane.Status.Store).To(Equal(store), "%+v", plane.Status)
			g.Expect(plane.Status.Move).To(BeNil(), "%+v", plane.Status)
			g.Expect(kit.Get(ctx, super.Client, red)).To(Succeed())
			g.Expect(red).To(kit.HaveCondition(tenancyv1alpha1.ConditionMoved, metav1.ConditionTrue, tenancyv1alpha1.ReasonMoved))
			g.Expect(red).To(kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		}).WithContext(ctx).WithTimeout(4 * later).WithPolling(100 * time.Millisecond).Should(Succeed())
	}
	other := func() string {
		if plane.Status.Store == "second" {
			return "default"
		}
		return "second"
	}
	// stopped waits until the control plane is stopped for a move.
	stopped := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(func() (*tenancyv1alpha1.HostedControlPlaneMove, error) {
			err := kit.Get(ctx, super.Client, plane)
			return plane.Status.Move, err
		}).WithContext(ctx).WithTimeout(2 * later).WithPolling(5 * time.Millisecond).ShouldNot(BeNil())
	}
	message := func(ctx context.Context, reason string) string {
		GinkgoHelper()
		Eventually(kit.Read(ctx, super.Client, red)).WithTimeout(later).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionMoved, metav1.ConditionFalse, reason))
		return meta.FindStatusCondition(must(kit.Read(ctx, super.Client, red)()).Status.Conditions, tenancyv1alpha1.ConditionMoved).Message
	}

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
		kit.Create(ctx, super.Client, red)
		Eventually(kit.Read(ctx, super.Client, red)).WithTimeout(later).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		second = super.AddStore(ctx, "second")
		Expect(kit.Get(ctx, super.Client, red)).To(Succeed())
		plane.Namespace, plane.Name = red.Status.ClusterNamespace, tenancyv1alpha1.HostedControlPlaneName
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: names.AdminKubeconfigSecret}}
		Expect(kit.Get(ctx, super.Client, secret)).To(Succeed())
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[names.AdminKubeconfigKey])
		Expect(err).NotTo(HaveOccurred())
		config.QPS = -1
		tenants, err = kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		fillTenant(ctx, tenants, number)
	}, NodeTimeout(20*later))

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

		ask(ctx, "second")
		stopped(ctx)
		arrives(ctx, "second")
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
	}, SpecTimeout(20*later))

	It("stays where it is if the store does not take it", func(ctx SpecContext) {
		listing := kit.StartLister(ctx, tenants)
		DeferCleanup(listing.Stop)
		ask(ctx, "nowhere")
		Expect(message(ctx, tenancyv1alpha1.ReasonNoStore)).To(ContainSubstring("ControlPlaneStore nowhere does not exist: the data stays in second"))
		store := &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		kit.Edit(ctx, super.Client, store, func(s *tenancyv1alpha1.ControlPlaneStore) { s.Spec.Unschedulable = true })
		ask(ctx, "default")
		Eventually(func() string { return message(ctx, tenancyv1alpha1.ReasonNoStore) }).Should(ContainSubstring("is unschedulable"))
		ask(ctx, "second")
		arrives(ctx, "second")
		kit.Edit(ctx, super.Client, store, func(s *tenancyv1alpha1.ControlPlaneStore) { s.Spec.Unschedulable = false })
		listing.Stop()
		Expect(listing.Failures()).To(BeEmpty())
	}, SpecTimeout(4*later))

	It("is served from the old store if the new one hangs during the copy", func(ctx SpecContext) {
		ask(ctx, "default")
		arrives(ctx, "default")
		writing := startWriter(ctx, tenants, "hang")
		DeferCleanup(writing.stop)
		DeferCleanup(func() { second.Signal(syscall.SIGCONT) })
		ask(ctx, "second")
		stopped(ctx)
		second.Signal(syscall.SIGSTOP)
		Expect(message(ctx, tenancyv1alpha1.ReasonMoveFailed)).To(ContainSubstring("is retried"))
		acknowledged := writing.written()
		Eventually(writing.written).WithTimeout(later).Should(BeNumerically(">", acknowledged+10))
		Expect(kit.Get(ctx, super.Client, plane)).To(Succeed())
		Expect(plane.Status.Store).To(Equal("default"))
		ask(ctx, "default")
		second.Signal(syscall.SIGCONT)
		arrives(ctx, "default")
		writing.check(ctx, tenants)
	}, SpecTimeout(8*later))

	It("arrives, whenever the replica that moves it is killed", func(ctx SpecContext) {
		for i, delay := range []time.Duration{0, 200 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond} {
			writing := startWriter(ctx, tenants, fmt.Sprintf("kill-%d", i))
			DeferCleanup(writing.stop)
			Eventually(writing.written).WithTimeout(later).Should(BeNumerically(">", 10))
			to := other()
			ask(ctx, to)
			stopped(ctx)
			time.Sleep(delay) // the step at which it is killed
			mover := plane.Status.Host
			killed := replicas[mover]
			Expect(killed).NotTo(BeNil(), mover)
			delete(replicas, mover)
			super.Service.Remove(killed.Address)
			killed.Kill().Wait(kit.Soon)
			arrives(ctx, to)
			acknowledged := writing.written()
			Eventually(writing.written).WithTimeout(later).Should(BeNumerically(">", acknowledged+10))
			writing.check(ctx, tenants)
			name := fmt.Sprintf("host-%d", i)
			replicas[name] = super.StartReplica(ctx, name)
		}
	}, SpecTimeout(30*later))

	It("leaves data behind if its object is removed by force, which is reported, and deleted when told", func(ctx SpecContext) {
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
		remove(name, plane.Namespace)
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
		left := &tenancyv1alpha1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: plane.Name}}
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
	}, SpecTimeout(8*later))
})

package integration

import (
	"context"
	"fmt"
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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// moveTime is how long a step of a move may take.
const moveTime = 6 * kit.Soon

// movedTenant is a tenant of a site whose data is moved between its stores.
type movedTenant struct {
	super  *kit.Site
	vc     *tenancyv1alpha1.VirtualCluster
	plane  *tenancyv1alpha1.HostedControlPlane
	client kubernetes.Interface
}

// newMovedTenant creates a tenant of a site, whose control plane is ready.
func newMovedTenant(ctx context.Context, super *kit.Site, change ...func(*tenancyv1alpha1.VirtualCluster)) *movedTenant {
	GinkgoHelper()
	made := super.NewTenant(ctx, change...)
	return &movedTenant{super: super, vc: made.VC, plane: made.Plane, client: must(kubernetes.NewForConfig(made.Config))}
}

// ask asks for a store.
func (m *movedTenant) ask(ctx context.Context, store string) {
	GinkgoHelper()
	kit.Edit(ctx, m.super.Client, m.vc, func(vc *tenancyv1alpha1.VirtualCluster) {
		if vc.Spec.ControlPlane == nil {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{}
		}
		vc.Spec.ControlPlane.Store = store
	})
}

// arrives waits until the data is in a store, and the control plane serves, or
// sleeps.
func (m *movedTenant) arrives(ctx context.Context, store string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(kit.Get(ctx, m.super.Client, m.plane)).To(Succeed())
		g.Expect(m.plane.Status.Store).To(Equal(store), "%+v", m.plane.Status)
		g.Expect(m.plane.Status.Move).To(BeNil(), "%+v", m.plane.Status)
		g.Expect(kit.Get(ctx, m.super.Client, m.vc)).To(Succeed())
		g.Expect(m.vc).To(kit.HaveCondition(tenancyv1alpha1.ConditionMoved, metav1.ConditionTrue, tenancyv1alpha1.ReasonMoved))
		g.Expect(meta.IsStatusConditionTrue(m.vc.Status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady)).To(BeTrue())
	}).WithContext(ctx).WithTimeout(4 * moveTime).WithPolling(100 * time.Millisecond).Should(Succeed())
}

// reaches waits until a status of the HostedControlPlane is, or was since it was
// read last, as a function says. It watches: a phase may be over in a moment.
func (m *movedTenant) reaches(ctx context.Context, phase func(tenancyv1alpha1.HostedControlPlaneStatus) bool) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, 2*moveTime)
	defer cancel()
	since := &client.ListOptions{Namespace: m.plane.Namespace, Raw: &metav1.ListOptions{ResourceVersion: m.plane.ResourceVersion}}
	watching := must(m.super.Client.Watch(ctx, &tenancyv1alpha1.HostedControlPlaneList{}, since))
	defer watching.Stop()
	for !phase(m.plane.Status) {
		select {
		case event := <-watching.ResultChan(): // it is closed when the time is over
			plane, found := event.Object.(*tenancyv1alpha1.HostedControlPlane)
			Expect(found).To(BeTrue(), "%+v after %+v", event, m.plane.Status)
			m.plane = plane
		case <-time.After(kit.Poll): // a phase may depend on the time
		}
	}
}

// hangs begins a move to the store second, which hangs while the data is copied. It
// begins again if it was too late for that.
func (m *movedTenant) hangs(ctx context.Context, second *gexec.Session) {
	GinkgoHelper()
	for range 5 {
		m.ask(ctx, "second")
		m.reaches(ctx, isStopped)
		second.Signal(syscall.SIGSTOP)
		Expect(kit.Get(ctx, m.super.Client, m.plane)).To(Succeed())
		if isStopped(m.plane.Status) && !isSwitched(m.plane.Status) {
			return
		}
		second.Signal(syscall.SIGCONT)
		m.arrives(ctx, "second")
		m.ask(ctx, "default")
		m.arrives(ctx, "default")
	}
	Fail("each move was over before the store could hang")
}

// The phases of a move to the store second.
func isPrepared(s tenancyv1alpha1.HostedControlPlaneStatus) bool {
	return s.Move == nil && s.Store != "second" && meta.IsStatusConditionFalse(s.Conditions, tenancyv1alpha1.ConditionMoved)
}

func isStopped(s tenancyv1alpha1.HostedControlPlaneStatus) bool { return s.Move != nil }

func isSwitched(s tenancyv1alpha1.HostedControlPlaneStatus) bool {
	return s.Move != nil && s.Store == s.Move.To
}

func hasRemainders(s tenancyv1alpha1.HostedControlPlaneStatus) bool {
	return s.Move == nil && len(s.Remainders) > 0
}

// message returns the message of the condition Moved, once it has a reason.
func (m *movedTenant) message(ctx context.Context, reason string) string {
	GinkgoHelper()
	Eventually(kit.Read(ctx, m.super.Client, m.vc)).WithTimeout(moveTime).Should(
		kit.HaveCondition(tenancyv1alpha1.ConditionMoved, metav1.ConditionFalse, reason))
	return meta.FindStatusCondition(must(kit.Read(ctx, m.super.Client, m.vc)()).Status.Conditions, tenancyv1alpha1.ConditionMoved).Message
}

// other returns the store, of two, that does not have the data.
func (m *movedTenant) other() string {
	if m.plane.Status.Store == "second" {
		return "default"
	}
	return "second"
}

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

package escapes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// A tenant may send any requests to its own control plane, at any rate. Others
// must be served meanwhile, and objects without a copy must not cause requests
// to the super cluster.
var _ = Describe("The time of others", Ordered, func() {
	const ns = "floods"
	var mallory, honest *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		dedicated := kit.WithIsolation(tenancyv1alpha1.IsolationDedicated)
		mallory, honest = tenant(ctx, dedicated), tenant(ctx, dedicated)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		kit.Create(ctx, honest.Client, kit.Namespace(ns))
	})

	// othersGetOn asserts that pods of another tenant run during a flood.
	othersGetOn := func(ctx context.Context, name string, f *flood) {
		GinkgoHelper()
		const few, waves = 10, 20
		Eventually(f.waves.Load).Should(BeNumerically(">=", waves))
		Expect(honest.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(ns), client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(running(ctx, honest, ns)).Should(BeZero())
		for i := range few {
			kit.Create(ctx, honest.Client, kit.Pod(ns, fmt.Sprintf("%s-%d", name, i)))
		}
		Eventually(running(ctx, honest, ns)).Should(Equal(few))
		before := f.waves.Load()
		Eventually(f.waves.Load).Should(BeNumerically(">", before), "the flood has ended before")
		f.stop()
		Expect(f.err()).NotTo(HaveOccurred())
	}

	attack("a flood of updates of one object", "Kubernetes documentation: API Priority and Fairness", func(ctx SpecContext) {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "flood"}, Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Port: 80}},
		}}
		kit.Create(ctx, mallory.Client, svc)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, svc))
		othersGetOn(ctx, "updates", newFlood(ctx, func(ctx context.Context, wave int64) error {
			ctx = context.WithoutCancel(ctx) // an apiserver may perform a request that was cancelled later
			patch := fmt.Sprintf(`{"spec":{"ports":[{"port":%d}]}}`, 1+wave%10_000)
			return mallory.Client.Patch(ctx, svc.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
		}))
		last := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "flood"}}
		Expect(kit.Get(ctx, mallory.Client, last)).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(mallory, svc))).
			Should(HaveField("Spec.Ports", ConsistOf(HaveField("Port", last.Spec.Ports[0].Port))))
	})

	attack("objects that come and go by the hundred", "review: churn that costs the tenant nothing", func(ctx SpecContext) {
		othersGetOn(ctx, "churn", newFlood(ctx, func(ctx context.Context, wave int64) error {
			ctx = context.WithoutCancel(ctx) // a wave that ends between both requests would leave its object in the tenant
			svc := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "churn-" + strconv.FormatInt(wave, 10)},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			}
			if err := mallory.Client.Create(ctx, svc); err != nil {
				return err
			}
			return mallory.Client.Delete(ctx, svc)
		}))
		Eventually(func() ([]string, error) {
			left := &corev1.ServiceList{}
			err := super.Client.List(ctx, left, client.InNamespace(mallory.Super(ns)))
			names := make([]string, len(left.Items))
			for i := range left.Items {
				names[i] = left.Items[i].Name
			}
			return names, err
		}).ShouldNot(ContainElement(HavePrefix("churn-")), "copies of what is gone")
	})

	attack("a thousand objects that nothing refers to", "review: churn of what has no copy", func(ctx SpecContext) {
		const objects = 1000
		before, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		for i := range objects {
			kit.Create(ctx, mallory.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("idle-%03d", i)}})
		}
		Expect(mallory.Client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(ns))).To(Succeed())
		Consistently(func() (map[string]float64, error) {
			now, err := syncer.Requests()
			sent := map[string]float64{}
			for what, n := range now.Since(before) {
				if what == "super create configmaps" || what == "super delete configmaps" {
					sent[what] = n
				}
			}
			return sent, err
		}).ShouldNot(ContainElement(BeNumerically(">=", objects/100)), "requests to the super cluster")
	})

	attack("a flood of events that claim to be the super cluster's", "review: what a tenant marks as copied up", func(ctx SpecContext) {
		f := newFlood(ctx, func(ctx context.Context, wave int64) error {
			return mallory.Client.Create(ctx, &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: ns, Name: fmt.Sprintf("flood-%d", wave), Labels: map[string]string{names.FromSuper: "true"},
				},
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "any"}, Reason: "Flood", Type: corev1.EventTypeNormal,
			})
		})
		othersGetOn(ctx, "events", f)
		events := &corev1.EventList{}
		Expect(super.Client.List(ctx, events, client.InNamespace(mallory.Super(ns)))).To(Succeed())
		Expect(events.Items).NotTo(ContainElement(HaveField("Reason", "Flood")))
	})

	attack("a flood of changes to its copy of a node", "review: each change is reverted and reported", func(ctx SpecContext) {
		p := kit.Pod(ns, "on-a-node")
		kit.Create(ctx, mallory.Client, p)
		Eventually(kit.Read(ctx, mallory.Client, p)).Should(HaveField("Status.Phase", corev1.PodRunning))
		Expect(kit.Get(ctx, mallory.Client, p)).To(Succeed())
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.Spec.NodeName}}
		before, err := kit.Read(ctx, super.Client, node)()
		Expect(err).NotTo(HaveOccurred())
		shown := kit.Read(ctx, mallory.Client, node)
		Eventually(shown).Should(HaveField("Labels", Not(BeEmpty())))
		othersGetOn(ctx, "node", newFlood(ctx, func(ctx context.Context, wave int64) error {
			patch := fmt.Sprintf(`{"metadata":{"labels":{"example.com/wave":"%d"}},"spec":{"unschedulable":%t}}`, wave, wave%2 == 0)
			return mallory.Client.Patch(ctx, node.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
		}))
		Eventually(shown).Should(And(HaveField("Labels", Not(HaveKey("example.com/wave"))), HaveField("Spec.Unschedulable", false)))
		Eventually(func() ([]corev1.Event, error) { // events are written a moment later
			events := &corev1.EventList{}
			err := mallory.Client.List(ctx, events, client.InNamespace(metav1.NamespaceDefault))
			return slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return e.Reason != "ChangeReverted" }), err
		}).Should(ConsistOf(And(HaveField("InvolvedObject.Name", node.Name), HaveField("Count", BeNumerically(">", 1)))))
		after, err := kit.Read(ctx, super.Client, node)()
		Expect(err).NotTo(HaveOccurred())
		Expect(after).To(And(HaveField("Labels", before.Labels), HaveField("Spec", before.Spec)))
	})

	attack("a storm of deletions of pods that were never there", "idea: each is remembered, so that its copy may be deleted", func(ctx SpecContext) {
		apiserver := kit.Hostile(mallory.Config)
		storming := accomplices(ctx, apiserver, 1)[0]
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(storming, kit.Namespace(ns)))
		othersGetOn(ctx, "storm", newFlood(ctx, storm(apiserver, ns)))
		pods := &corev1.PodList{}
		Expect(super.Client.List(ctx, pods, client.InNamespace(storming.Super(ns)))).To(Succeed())
		Expect(pods.Items).NotTo(ContainElement(HaveField("Name", HavePrefix("storm-"))))
	})

	attack("an apiserver whose connections break all the time", "review: watches that restart cost lists", func(ctx SpecContext) {
		apiserver := kit.Hostile(mallory.Config)
		flapping := accomplices(ctx, apiserver, 1)[0]
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "flaps"}, Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Port: 80}},
		}}
		kit.Create(ctx, mallory.Client, svc)
		copied := kit.SuperOf(flapping, svc)
		kit.ShouldExist(ctx, super.Client, copied)
		none := func(*http.Request) bool { return false }
		othersGetOn(ctx, "flaps", newFlood(ctx, func(ctx context.Context, _ int64) error {
			apiserver.On(none, nil)() // breaks all connections, twice
			select {
			case <-time.After(10 * kit.Poll): // the watches begin again
			case <-ctx.Done():
			}
			return nil
		}))
		Expect(kit.Read(ctx, super.Client, copied)()).To(HaveField("UID", copied.UID), "the copy is the one that it was")
		kit.Edit(ctx, mallory.Client, svc, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
		Eventually(kit.Read(ctx, super.Client, copied)).WithTimeout(relisted).
			Should(HaveField("Spec.Ports", ConsistOf(HaveField("Port", int32(81)))))
	})
})

// storm adds watch events of pods that the apiserver does not have, each of which
// comes and goes, or only goes, and returns a function that sends the next.
func storm(apiserver *local.Hostile, ns string) func(ctx context.Context, wave int64) error {
	next := make(chan *corev1.Pod)
	answering(apiserver, local.Lists("pods"), local.Inject(func(ctx context.Context, send func(watch.EventType, any) error) {
		for {
			select {
			case p := <-next:
				if err := errors.Join(send(watch.Added, p), send(watch.Deleted, p), send(watch.Deleted, p)); err != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}))
	return func(ctx context.Context, wave int64) error {
		p := kit.Pod(ns, fmt.Sprintf("storm-%d", wave))
		p.APIVersion, p.Kind, p.UID, p.ResourceVersion = "v1", "Pod", types.UID(fmt.Sprintf("storm-%d", wave)), "1"
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(0))
		select {
		case next <- p:
		case <-ctx.Done():
		}
		return nil
	}
}

// flood repeats something until it is stopped.
type flood struct {
	waves  atomic.Int64
	cancel context.CancelFunc
	done   sync.WaitGroup
	failed error // of the last wave; to be read when done
}

// newFlood starts a flood of waves, which have numbers.
func newFlood(ctx context.Context, wave func(context.Context, int64) error) *flood {
	f := &flood{}
	ctx, f.cancel = context.WithCancel(ctx)
	f.done.Go(func() {
		for ctx.Err() == nil && f.failed == nil {
			f.failed = wave(ctx, f.waves.Load())
			f.waves.Add(1)
		}
		if ctx.Err() != nil {
			f.failed = nil // it was stopped in a wave
		}
	})
	DeferCleanup(f.stop)
	return f
}

// stop ends the flood.
func (f *flood) stop() {
	f.cancel()
	f.done.Wait()
}

// err returns why a flood ended that was not stopped.
func (f *flood) err() error { return f.failed }

package escapes

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const lostData = "docs/decisions/0008, 0009: the loss of a tenant's data"

// An apiserver may claim that objects were deleted, and delete objects in ways
// that no real one does. It may lose its own copies by that, but causes neither
// requests without end nor any effect on other tenants.
var _ = Describe("Deletions that a tenant's apiserver claims", Ordered, ContinueOnFailure, func() {
	const ns = deletionsNamespace
	var (
		mallory, honest *local.Tenant
		hostile         *local.Hostile
		others          map[string]types.UID
	)

	// inhabit creates a namespace with a Service and pods that run.
	inhabit := func(ctx context.Context, t *local.Tenant, pods int) {
		GinkgoHelper()
		kit.Create(ctx, t.Client, kit.Namespace(ns), service(ns, "web"))
		for i := range pods {
			kit.Create(ctx, t.Client, kit.Pod(ns, fmt.Sprintf("web-%d", i)))
		}
		Eventually(running(ctx, t, ns)).Should(Equal(pods))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(t, service(ns, "web")))
	}
	// lists makes the syncer read a changed list of a resource.
	lists := func(resource string, change func(items []any) []any) {
		GinkgoHelper()
		answering(hostile, local.Lists(resource), local.NoStream(local.Rewrite(func(list map[string]any) {
			items, _ := list["items"].([]any)
			list["items"] = change(items)
		})))
		expireWatches(hostile, resource)
	}

	BeforeAll(func(ctx SpecContext) {
		honest = tenant(ctx)
		inhabit(ctx, honest, 2)
		others = copiesOf(ctx, honest)
		Expect(others).To(HaveLen(4), "the namespace, the Service and two pods")
	})

	BeforeEach(func(ctx SpecContext) {
		mallory, hostile = hostileTenant(ctx)
		inhabit(ctx, mallory, 2)
	})

	AfterEach(func(ctx SpecContext) {
		Expect(copiesOf(ctx, honest)).To(Equal(others))
		shouldSync(ctx, honest, "default", fmt.Sprintf("after-%d", time.Now().UnixNano()))
		Eventually(kit.Read(ctx, super.Client, honest.VC)).Should( // a machine that stands still makes it unreachable, too
			kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	})

	attack("watch events that claim the deletion of objects that exist", lostData, func(ctx SpecContext) {
		p := kit.Pod(ns, "web-0")
		Expect(kit.Get(ctx, mallory.Client, p)).To(Succeed())
		claimed := p.DeepCopy()
		claimed.DeletionTimestamp, claimed.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(0))
		undo := hostile.On(local.Lists("pods"), local.Inject(once(func(send func(watch.EventType, any) error) error {
			return send(watch.Deleted, typed(claimed))
		})))
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(mallory, p))
		undo()
		// The next list shows a pod that has run, and has lost its copy.
		expireWatches(hostile, "pods")
		Eventually(kit.Get).WithContext(ctx).WithArguments(mallory.Client, p).WithTimeout(relisted).
			Should(MatchError(apierrors.IsNotFound, "not found"))
	})

	attack("watch events that claim the deletion of another tenant's objects", "idea: UIDs are the tenant's word", func(ctx SpecContext) {
		theirs := kit.Pod(ns, "web-1")
		Expect(kit.Get(ctx, honest.Client, theirs)).To(Succeed())
		copied := kit.SuperOf(honest, theirs)
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		sent := make(chan struct{})
		answering(hostile, local.Lists("pods"), local.Inject(once(func(send func(watch.EventType, any) error) error {
			defer close(sent)
			for _, claimed := range []*corev1.Pod{theirs.DeepCopy(), copied.DeepCopy()} {
				claimed.DeletionTimestamp, claimed.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(0))
				for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
					if err := send(kind, typed(claimed)); err != nil {
						return err
					}
				}
			}
			return nil
		})))
		Eventually(sent).WithContext(ctx).WithTimeout(relisted).Should(BeClosed())
		Consistently(kit.Read(ctx, super.Client, copied)).Should(And(
			HaveField("UID", copied.UID), HaveField("DeletionTimestamp", BeNil())))
	})

	attack("an empty list of pods, while many run", lostData, func(ctx SpecContext) {
		const more = 5 // no more may vanish without a question
		for i := range more {
			kit.Create(ctx, mallory.Client, kit.Pod(ns, fmt.Sprintf("more-%d", i)))
		}
		Eventually(running(ctx, mallory, ns)).Should(Equal(2 + more))
		before := copiesOf(ctx, mallory)
		lists("pods", func([]any) []any { return []any{} })
		Eventually(kit.Read(ctx, super.Client, mallory.VC)).WithTimeout(relisted).Should(
			haveSyncing(tenancyv1alpha1.ReasonRemovalUnconfirmed, names.ConfirmRemoval))
		Consistently(func() map[string]types.UID { return copiesOf(ctx, mallory) }).Should(Equal(before))
	})

	attack("an empty list of namespaces, whose pods are still listed", lostData, func(ctx SpecContext) {
		before := copiesOf(ctx, mallory)
		lists("namespaces", func(items []any) []any {
			kept := []any{}
			for _, item := range items {
				if item.(map[string]any)["metadata"].(map[string]any)["name"] == metav1.NamespaceSystem {
					kept = append(kept, item)
				}
			}
			return kept
		})
		Eventually(func() int { return hostile.Seen(local.Lists("namespaces")) }).WithTimeout(relisted).Should(BeNumerically(">", 1))
		Consistently(func() map[string]types.UID { return copiesOf(ctx, mallory) }).WithTimeout(2 * patrol).Should(Equal(before))
	})

	attack("a part of a list, again and again with other parts", "idea: each list deletes what the previous one had", func(ctx SpecContext) {
		for i := range 4 {
			kit.Create(ctx, mallory.Client, service(ns, fmt.Sprintf("part-%d", i)))
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, service(ns, fmt.Sprintf("part-%d", i))))
		}
		var round atomic.Int64
		lists("services", func(items []any) []any {
			n := int(round.Add(1)) % len(items)
			return items[n : n+1]
		})
		Eventually(round.Load).WithTimeout(relisted).Should(BeNumerically(">", 0))
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(mallory, service(ns, "part-3")))
	})

	attack("an object with another UID at each event", "idea: each UID is another object, whose copy replaces the previous one", func(ctx SpecContext) {
		var count atomic.Int64
		answering(hostile, local.Lists("services"), local.RewriteItems(func(object map[string]any) {
			object["metadata"].(map[string]any)["uid"] = fmt.Sprintf("uid-%d", count.Add(1))
		}))
		before, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		created := func() (float64, error) {
			now, err := syncer.Requests()
			return now.Since(before)["super create services"], err
		}
		svc := service(ns, "web")
		const edits = 20
		for i := range edits {
			kit.Edit(ctx, mallory.Client, svc, func(s *corev1.Service) { s.Spec.Ports[0].Port = int32(1000 + i) })
		}
		Eventually(created).WithTimeout(relisted).Should(BeNumerically(">", 0))
		// Without events, nothing is replaced, whatever the patrol compares.
		Eventually(func(g Gomega) {
			settled, err := created()
			g.Expect(err).NotTo(HaveOccurred())
			g.Consistently(created, 2*patrol).Should(Equal(settled))
		}).WithTimeout(relisted).Should(Succeed())
	})

	attack("a stream of changes, which only hosts of the platform serve", "docs/decisions/0048", func(SpecContext) {
		Expect(hostile.Seen(local.Lists("pods"))).To(BeNumerically(">", 0))
		Expect(hostile.Seen(local.Path(watchstream.Path))).To(BeZero())
	})
})

// deletionsNamespace is where the tenants of these attacks have objects.
const deletionsNamespace = "deletions"

// copiesOf returns the UIDs of a tenant's copies in that namespace that are not
// being deleted, and that of the namespace.
func copiesOf(ctx context.Context, t *local.Tenant) map[string]types.UID {
	GinkgoHelper()
	found := map[string]types.UID{}
	add := func(kind string, obj client.Object) {
		if obj.GetDeletionTimestamp() == nil {
			found[kind+" "+obj.GetName()] = obj.GetUID()
		}
	}
	in := kit.Namespace(t.Super(deletionsNamespace))
	Expect(kit.Get(ctx, super.Client, in)).To(Succeed())
	add("namespace", in)
	pods, services := &corev1.PodList{}, &corev1.ServiceList{}
	for _, list := range []client.ObjectList{pods, services} {
		Expect(super.Client.List(ctx, list, client.InNamespace(in.Name))).To(Succeed())
	}
	for i := range pods.Items {
		add("pod", &pods.Items[i])
	}
	for i := range services.Items {
		add("service", &services.Items[i])
	}
	return found
}

// once returns a function for local.Inject that sends events in the first watch
// only.
func once(events func(send func(watch.EventType, any) error) error) func(context.Context, func(watch.EventType, any) error) {
	var done atomic.Bool
	return func(_ context.Context, send func(watch.EventType, any) error) {
		defer GinkgoRecover()
		if !done.Swap(true) {
			Expect(events(send)).To(Succeed())
		}
	}
}

// typed returns an object with its kind, as apiservers send it in events.
func typed[T client.Object](obj T) T {
	GinkgoHelper()
	gvk, err := super.Client.GroupVersionKindFor(runtime.Object(obj))
	Expect(err).NotTo(HaveOccurred())
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}

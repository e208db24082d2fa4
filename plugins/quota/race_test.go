package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins"
)

var red = plugins.Tenant{Key: "red", Name: "red", Namespace: "team", UID: "red-uid"}

// limited returns a quota with one tenant and its limits, without a cache, and
// the handler for the events of its cache.
func limited(t *testing.T, spec *tenancyv1alpha1.QuotaSpec) (*Quota, toolscache.ResourceEventHandler) {
	t.Helper()
	q := New()
	if err := q.init(plugins.Environment{Registerer: prometheus.NewRegistry(), Cache: classesOf(), Kinds: declared()}); err != nil {
		t.Fatal(err)
	}
	q.know(virtualCluster(spec))
	close(q.counted)
	return q, q.countingHandler(context.Background(), q.kinds[corev1.SchemeGroupVersion.WithKind("Pod").GroupKind()])
}

func virtualCluster(spec *tenancyv1alpha1.QuotaSpec) *tenancyv1alpha1.VirtualCluster {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: red.Namespace, Name: red.Name, UID: red.UID}}
	vc.Spec.Quota = spec
	vc.Status.ClusterNamespace = red.Key
	return vc
}

func hard(limits ...string) *tenancyv1alpha1.QuotaSpec {
	spec := &tenancyv1alpha1.QuotaSpec{Hard: tenancyv1alpha1.Limits{}}
	for i := 0; i < len(limits); i += 2 {
		spec.Hard[corev1.ResourceName(limits[i])] = tenancyv1alpha1.Limit(limits[i+1])
	}
	return spec
}

// creation returns a request for a new pod.
func creation(name string, change ...func(*corev1.Pod)) plugins.Request {
	pod := podOf(corev1.Container{})
	pod.Namespace, pod.Name, pod.Annotations = "red-shop", name, map[string]string{names.Cluster: red.Key}
	for _, f := range change {
		f(pod)
	}
	return plugins.Request{Tenant: red, Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Object: pod}
}

// write does what the syncer does for a write: lock, validate, write, settle,
// unlock.
func write(t *testing.T, q *Quota, r plugins.Request, do func() error) error {
	lock := q.Locker(r.Tenant.Key)
	if err := lock.Lock(t.Context()); err != nil {
		return err
	}
	defer lock.Unlock()
	if err := q.Validate(t.Context(), r); err != nil {
		return err
	}
	err := do()
	q.Settled(r, err)
	return err
}

// TestTheLastSlot checks that of 20 concurrent writers for the last slot of a
// tenant one is allowed, whatever the order of the cache's events (QV-16). Some
// answers are lost, and some pods are deleted before their writer gets the
// answer.
func TestTheLastSlot(t *testing.T) {
	const rounds, writers, slots = 1000, 20, 1
	q, cache := limited(t, hard("pods", strconv.Itoa(slots)))
	var versions, running, most atomic.Int64
	lost := errors.New("connection lost")
	for round := range rounds {
		var race, late sync.WaitGroup
		for writer := range writers {
			race.Go(func() {
				r := creation(fmt.Sprintf("pod-%d-%d", round, writer))
				err := write(t, q, r, func() error {
					now := running.Add(1)
					for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
					}
					r.Object.SetUID(types.UID(r.Object.GetName()))
					r.Object.SetResourceVersion(strconv.FormatInt(versions.Add(1), 10))
					event := r.Object.DeepCopyObject()
					gone := func() {
						running.Add(-1)
						cache.OnDelete(event)
					}
					switch rand.IntN(4) {
					case 0: // the cache is faster than the answer
						cache.OnAdd(event, false)
					case 1: // and so is the deletion
						cache.OnAdd(event, false)
						gone()
						return nil
					case 2:
						late.Go(func() { cache.OnAdd(event, false) })
						return lost
					default:
						late.Go(func() { cache.OnAdd(event, false) })
					}
					return nil
				})
				if err != nil && !errors.Is(err, lost) && !errors.As(err, new(*plugins.RejectionError)) {
					t.Error(err)
				}
			})
		}
		race.Wait()
		late.Wait()
		if n := running.Load(); n > slots {
			t.Fatalf("round %d: %d pods run, and %d may", round, n, slots)
		}
		for writer := range writers {
			pod := creation(fmt.Sprintf("pod-%d-%d", round, writer)).Object
			pod.SetUID(types.UID(pod.GetName()))
			if q.has(pod.GetName()) {
				running.Add(-1)
				cache.OnDelete(pod)
			}
		}
		if used, _ := q.ledger.usedBy(red.Key, ""); len(used) != 0 {
			t.Fatalf("round %d: when all pods are gone, the tenant has %v", round, texts(used))
		}
	}
	if n := most.Load(); n != slots {
		t.Errorf("at most %d pods ran at a time, and %d may", n, slots)
	}
}

// has reports whether a pod is charged for.
func (q *Quota) has(name string) bool {
	q.ledger.mu.Lock()
	defer q.ledger.mu.Unlock()
	a := q.ledger.accounts[red.Key]
	if a == nil {
		return false
	}
	_, there := a.charges[object{count: "count/pods", key: types.NamespacedName{Namespace: "red-shop", Name: name}}]
	return there
}

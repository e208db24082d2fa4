package quota

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// made validates and settles a creation that succeeds.
func made(t *testing.T, q *Quota, version string, r plugins.Request) {
	t.Helper()
	err := write(t, q, r, func() error {
		r.Object.SetUID(types.UID(r.Object.GetName()))
		r.Object.SetResourceVersion(version)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func needs(requests map[string]string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{container(requests, requests)} }
}

func inClass(class string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = class }
}

func TestValidate(t *testing.T) {
	high := &tenancyv1alpha1.QuotaSpec{
		Hard:            tenancyv1alpha1.Limits{"pods": "3"},
		PriorityClasses: []tenancyv1alpha1.PriorityClassQuota{{Name: "high", Hard: tenancyv1alpha1.PodLimits{"pods": "1"}}},
	}
	for name, tc := range map[string]struct {
		spec   *tenancyv1alpha1.QuotaSpec
		before []plugins.Request
		r      plugins.Request
		want   string // empty: allowed
	}{
		"no limits":     {nil, nil, creation("a"), ""},
		"no spec":       {&tenancyv1alpha1.QuotaSpec{}, nil, creation("a"), ""},
		"room":          {hard("pods", "2"), []plugins.Request{creation("a")}, creation("b"), ""},
		"no room":       {hard("pods", "1"), []plugins.Request{creation("a")}, creation("b"), "pods: used 1, asked 1, hard 1"},
		"nothing":       {hard("pods", "0"), nil, creation("a"), "pods: used 0, asked 1, hard 0"},
		"just enough":   {hard("requests.cpu", "1500m"), []plugins.Request{creation("a", needs(cpu("1")))}, creation("b", needs(cpu("500m"))), ""},
		"a little more": {hard("requests.cpu", "1500m"), []plugins.Request{creation("a", needs(cpu("1")))}, creation("b", needs(cpu("501m"))), "requests.cpu: used 1, asked 501m, hard 1500m"},
		"two at a time": {
			hard("limits.cpu", "1", "pods", "1"),
			[]plugins.Request{creation("a", needs(cpu("1")))},
			creation("b", needs(cpu("1"))),
			"limits.cpu: used 1, asked 1, hard 1; pods: used 1, asked 1, hard 1",
		},
		"an unlimited resource":          {hard("requests.cpu", "1", "services", "0"), nil, creation("a", needs(cpu("1"))), ""},
		"without declaring it":           {hard("requests.cpu", "1", "limits.memory", "1Gi"), nil, creation("a", needs(cpu("1"))), "declare the limited resources: limits.memory"},
		"not declared for extended ones": {hard("requests.nvidia.com/gpu", "1"), nil, creation("a"), ""},
		"too many of a device":           {hard("requests.nvidia.com/gpu", "1"), nil, creation("a", needs(map[string]string{"nvidia.com/gpu": "2"})), "requests.nvidia.com/gpu: used 0, asked 2, hard 1"},
		"the same again":                 {hard("pods", "1"), []plugins.Request{creation("a")}, creation("a"), ""},
		"of a class":                     {high, []plugins.Request{creation("a")}, creation("b", inClass("high")), ""},
		"too many of a class":            {high, []plugins.Request{creation("a", inClass("high"))}, creation("b", inClass("high")), "pods of priority class high: used 1, asked 1, hard 1"},
		"another class":                  {high, []plugins.Request{creation("a", inClass("high"))}, creation("b", inClass("low")), ""},
		"a class counts in all":          {high, []plugins.Request{creation("a"), creation("b"), creation("c")}, creation("d", inClass("high")), "pods: used 3, asked 1, hard 3"},
		"empty limits":                   {hard("pods", "many"), nil, creation("a"), `limit "many" of pods`},
		"negative limits":                {hard("pods", "-1"), nil, creation("a"), "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := limited(t, tc.spec)
			for _, r := range tc.before {
				made(t, q, "1", r)
			}
			err := q.Validate(t.Context(), tc.r)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestResize checks that a change counts by what it adds.
func TestResize(t *testing.T) {
	q, _ := limited(t, hard("requests.cpu", "2", "limits.cpu", "2"))
	made(t, q, "1", creation("a", needs(cpu("1"))))
	change := func(to string) error {
		was := creation("a", needs(cpu("1"))).Object
		r := creation("a", needs(cpu(to)))
		r.Was = was
		return q.Validate(t.Context(), r)
	}
	if err := change("2"); err != nil {
		t.Errorf("to the limit: %v", err)
	}
	if err := change("2001m"); err == nil || !strings.Contains(err.Error(), "requests.cpu: used 0, asked 2001m, hard 2") {
		t.Errorf("above the limit: %v", err)
	}
	q.know(virtualCluster(hard("requests.cpu", "500m", "limits.cpu", "500m")))
	for _, to := range []string{"1", "800m"} {
		if err := change(to); err != nil {
			t.Errorf("to %s, after the limit was lowered below that: %v", to, err)
		}
	}
	if err := change("1100m"); err == nil {
		t.Error("it grows above a limit that was lowered")
	}
}

// TestLimitsChange checks that rejected objects are retried when a limit
// changes or a resource is freed, and only then. Limits are followed by watch
// (QV-13).
func TestLimitsChange(t *testing.T) {
	q, cache := limited(t, hard("pods", "1"))
	expect := func(when string, want int) {
		t.Helper()
		if got := len(q.loosened.take()); got != want {
			t.Errorf("%s: %d tenants are retried, want %d", when, got, want)
		}
	}
	expect("first seen", 1)
	q.know(virtualCluster(hard("pods", "1")))
	expect("the same limits", 0)
	q.know(virtualCluster(hard("pods", "2")))
	expect("other limits", 1)
	a := creation("a")
	made(t, q, "1", a)
	cache.OnAdd(a.Object, false)
	expect("more used", 0)
	ended := a.Object.DeepCopyObject().(*corev1.Pod)
	ended.ResourceVersion, ended.Status.Phase = "2", corev1.PodSucceeded
	cache.OnUpdate(a.Object, ended)
	expect("a pod ended", 1)
	cache.OnDelete(ended)
	expect("a pod is gone", 1)
}

func TestTheCacheHasTheLastWord(t *testing.T) {
	lost := errors.New("connection lost")
	refused := apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("no"))
	for name, tc := range map[string]struct {
		result error
		then   func(q *Quota, pod *corev1.Pod)
		want   int64
	}{
		"refused":                {refused, nil, 0},
		"the answer is lost":     {lost, nil, 1},
		"lost, and not created":  {lost, func(q *Quota, _ *corev1.Pod) { q.ledger.settle(red.Key, q.first(), nil) }, 0},
		"lost, and in the cache": {lost, func(q *Quota, p *corev1.Pod) { q.countingHandler(t.Context(), q.podKind()).OnAdd(p, false) }, 1},
		"made":                   {nil, nil, 1},
		"created, and an older state in the cache": {nil, func(q *Quota, p *corev1.Pod) { q.countingHandler(t.Context(), q.podKind()).OnAdd(aged(p, "0"), false) }, 1},
		"created, and in the cache":                {nil, func(q *Quota, p *corev1.Pod) { q.countingHandler(t.Context(), q.podKind()).OnAdd(p, false) }, 1},
		"created, and deleted":                     {nil, func(q *Quota, p *corev1.Pod) { q.countingHandler(t.Context(), q.podKind()).OnDelete(p) }, 0},
		"created, and its predecessor is deleted": {nil, func(q *Quota, p *corev1.Pod) {
			other := aged(p, "0")
			other.UID = "other"
			q.countingHandler(t.Context(), q.podKind()).OnDelete(other)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := limited(t, hard("pods", "1"))
			r := creation("a")
			pod := r.Object.(*corev1.Pod)
			_ = write(t, q, r, func() error {
				pod.UID, pod.ResourceVersion = "uid", "1"
				return tc.result
			})
			if tc.then != nil {
				tc.then(q, pod)
			}
			used, _ := q.ledger.usedBy(red.Key, "")
			if got := used[corev1.ResourcePods]; got.Value() != tc.want {
				t.Errorf("the tenant has %s pods, want %d", &got, tc.want)
			}
		})
	}
}

func (q *Quota) podKind() kind { return q.kinds[corev1.SchemeGroupVersion.WithKind("Pod").GroupKind()] }

func (q *Quota) first() object {
	for id := range q.ledger.accounts[red.Key].charges {
		return id
	}
	return object{}
}

func aged(pod *corev1.Pod, version string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion = version
	return pod
}

// TestWhatIsAssumedIsReviewed checks that an assumed charge is reviewed if no
// event confirms it for long.
func TestWhatIsAssumedIsReviewed(t *testing.T) {
	q, cache := limited(t, hard("pods", "2"))
	seen, unseen := creation("seen"), creation("unseen")
	made(t, q, "1", seen)
	made(t, q, "2", unseen)
	cache.OnAdd(seen.Object, false)
	if due := q.ledger.due(time.Now()); len(due) != 0 {
		t.Errorf("at once, %v are reviewed", due)
	}
	due := q.ledger.due(time.Now().Add(lag))[red.Key]
	if len(due) != 1 || due[0].key.Name != "unseen" {
		t.Errorf("after a while, %v are reviewed", due)
	}
}

func TestBeforeAllIsCountedNothingIsAllowed(t *testing.T) {
	q := New()
	err := q.init(plugins.Environment{Registerer: prometheus.NewRegistry(), Kinds: declared()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Validate(ctx, creation("a")); err == nil || errors.As(err, new(*plugins.RejectionError)) {
		t.Errorf("got %v", err)
	}
}

// TestUnknownTenantsHaveNoLock checks that a tenant without a VirtualCluster
// has no lock (QV-12).
func TestUnknownTenantsHaveNoLock(t *testing.T) {
	q, _ := limited(t, nil)
	if q.Locker(red.Key) == nil {
		t.Error("a tenant has no lock")
	}
	if q.Locker("blue") != nil {
		t.Error("an unknown tenant has a lock")
	}
	q.forget(red.Key)
	if q.Locker(red.Key) != nil {
		t.Error("a deleted tenant has a lock")
	}
}

func TestStatus(t *testing.T) {
	q, _ := limited(t, &tenancyv1alpha1.QuotaSpec{
		Hard:            tenancyv1alpha1.Limits{"pods": "3", "requests.memory": "1Gi"},
		PriorityClasses: []tenancyv1alpha1.PriorityClassQuota{{Name: "high", Hard: tenancyv1alpha1.PodLimits{"pods": "1"}}},
	})
	made(t, q, "1", creation("a", inClass("high"), needs(map[string]string{"memory": "256Mi"})))
	known, _ := q.tenant(red.Key)
	status := q.statusOf(red.Key, known.limits)
	if want := "pods 1/3, requests.memory 256Mi/1Gi, high pods 1/1"; status.Summary != want {
		t.Errorf("got %s, want %s", status.Summary, want)
	}
	if got := status.Used[corev1.ResourceRequestsMemory]; got.String() != "256Mi" {
		t.Errorf("%s of memory are used", &got)
	}
	if q.statusOf(red.Key, limits{}) != nil {
		t.Error("a status of no limits")
	}
}

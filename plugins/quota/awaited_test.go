package quota

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/plugins"
)

// admitted validates a write that the super cluster executes later.
func admitted(t *testing.T, q *Quota, r plugins.Request) bool {
	t.Helper()
	err := write(t, q, r, func() error { return plugins.ErrAwaited })
	if plugins.AsRejection(err) == nil && err != plugins.ErrAwaited { //nolint:errorlint // it is passed through
		t.Fatal(err)
	}
	return plugins.AsRejection(err) == nil
}

// created returns a request for a pod that the super cluster is about to create.
func created(name, uid string, change ...func(*corev1.Pod)) plugins.Request {
	r := creation(name, change...)
	r.Object.SetUID(types.UID(uid))
	return r
}

// stored returns the pod of a request in a version.
func stored(r plugins.Request, version string) *corev1.Pod {
	pod := r.Object.DeepCopyObject().(*corev1.Pod)
	pod.ResourceVersion = version
	return pod
}

// changed returns a request for a change of a pod that is stored in a version.
func changed(was *corev1.Pod, change func(*corev1.Pod)) plugins.Request {
	r := created(was.Name, string(was.UID), change)
	r.Was = was
	return r
}

// TestAwaitedWrites checks that writes count from the answer on, whatever events
// of earlier states of the object come, until their own event.
func TestAwaitedWrites(t *testing.T) {
	small, large := needs(cpu("1")), needs(cpu("3"))
	for name, tc := range map[string]struct {
		limit string
		steps func(q *Quota, events toolscache.ResourceEventHandler)
		fits  bool // one more pod of 1 CPU
	}{
		"a creation":  {"2", func(q *Quota, _ toolscache.ResourceEventHandler) { admitted(t, q, created("a", "1", needs(cpu("2")))) }, false},
		"a small one": {"2", func(q *Quota, _ toolscache.ResourceEventHandler) { admitted(t, q, created("a", "1", small)) }, true},
		"one that landed": {"2", func(q *Quota, e toolscache.ResourceEventHandler) {
			a := created("a", "1", small)
			admitted(t, q, a)
			e.OnAdd(stored(a, "5"), false)
		}, true},
		"one by a name that is taken": {"3", func(q *Quota, e toolscache.ResourceEventHandler) {
			a := stored(created("a", "1", large), "5")
			e.OnAdd(a, false)
			admitted(t, q, created("a", "2"))
		}, false},
		"one after a deletion whose event is late": {"2", func(q *Quota, e toolscache.ResourceEventHandler) {
			a := stored(created("a", "1", small), "5")
			e.OnAdd(a, false)
			admitted(t, q, created("a", "2", small))
			e.OnDelete(a)
		}, true},
		"one of that name that is large": {"2", func(q *Quota, e toolscache.ResourceEventHandler) {
			a := stored(created("a", "1"), "5")
			e.OnAdd(a, false)
			admitted(t, q, created("a", "2", needs(cpu("2"))))
			e.OnUpdate(a, a)
			e.OnDelete(a)
		}, false},
		"one that is deleted at once": {"1", func(q *Quota, e toolscache.ResourceEventHandler) {
			a := created("a", "1", small)
			admitted(t, q, a)
			e.OnDelete(stored(a, "6"))
		}, true},
		"a change, before its event": {"3", func(q *Quota, e toolscache.ResourceEventHandler) {
			a := stored(created("a", "1", small), "5")
			e.OnAdd(a, false)
			admitted(t, q, changed(a, large))
			e.OnUpdate(a, a)
		}, false},
		"a change that another was faster than": {"3", func(q *Quota, e toolscache.ResourceEventHandler) {
			a := stored(created("a", "1", small), "5")
			e.OnAdd(a, false)
			admitted(t, q, changed(a, large))
			e.OnUpdate(a, stored(created("a", "1", small), "6"))
		}, true},
		"a change to less": {"3", func(q *Quota, e toolscache.ResourceEventHandler) {
			a := stored(created("a", "1", large), "5")
			e.OnAdd(a, false)
			admitted(t, q, changed(a, small))
		}, false},
		"two changes, the larger one first": {"3", func(q *Quota, e toolscache.ResourceEventHandler) {
			a := stored(created("a", "1", small), "5")
			e.OnAdd(a, false)
			admitted(t, q, changed(a, large))
			admitted(t, q, changed(a, needs(cpu("2"))))
		}, false},
		"a change after a late one": {"3", func(q *Quota, e toolscache.ResourceEventHandler) {
			a := stored(created("a", "1", small), "5")
			e.OnAdd(a, false)
			admitted(t, q, changed(stored(created("a", "1", small), "6"), large))
			admitted(t, q, changed(a, large))
			e.OnUpdate(a, stored(created("a", "1", small), "6"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			q, events := limited(t, hard("requests.cpu", tc.limit))
			tc.steps(q, events)
			if got := admitted(t, q, created("more", "m", small)); got != tc.fits {
				t.Errorf("one more pod fits: %v", got)
			}
		})
	}
}

// TestWritesThatFailed checks that a write without an event counts for a while
// only.
func TestWritesThatFailed(t *testing.T) {
	q, _ := limited(t, hard("pods", "1"))
	if !admitted(t, q, created("a", "1")) || admitted(t, q, created("b", "2")) {
		t.Fatal("one pod fits")
	}
	q.review(t.Context(), time.Now().Add(lag/2))
	if admitted(t, q, created("b", "3")) {
		t.Error("the write may be under way")
	}
	q.review(t.Context(), time.Now().Add(lag+time.Second))
	if !admitted(t, q, created("b", "4")) {
		t.Error("the write has failed")
	}
}

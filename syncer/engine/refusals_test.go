package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRefusedObjectsWaitLongerEachTime(t *testing.T) {
	r := newRefusals(func(string, int) {})
	var got []time.Duration
	for range 9 {
		got = append(got, r.next("Pod", webKey))
	}
	s := time.Second
	want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestRefusedObjectsWaitEachForItself(t *testing.T) {
	r := newRefusals(func(string, int) {})
	other := client.ObjectKey{Namespace: "other", Name: "web"}
	r.clear("Pod", webKey) // was never refused
	r.next("Pod", webKey)
	if got := r.next("Service", webKey); got != refusedFirst {
		t.Errorf("a service of that name waits %s", got)
	}
	if got := r.next("Pod", other); got != refusedFirst {
		t.Errorf("a pod of that name in another namespace waits %s", got)
	}
	r.clear("Service", webKey)
	if got := r.next("Pod", webKey); got != 2*refusedFirst {
		t.Errorf("after another was accepted, the pod waits %s", got)
	}
	r.clear("Pod", webKey)
	if got := r.next("Pod", webKey); got != refusedFirst {
		t.Errorf("after it was accepted, the pod waits %s", got)
	}
	r.clear("Pod", webKey)
	r.clear("Pod", other)
	if len(r.known) != 0 {
		t.Errorf("%d objects are remembered that nobody refuses", len(r.known))
	}
}

func TestRefusedObjectsAreCountedOnce(t *testing.T) {
	counts := map[string]int{}
	r := newRefusals(func(kind string, by int) { counts[kind] += by })
	other := client.ObjectKey{Namespace: "other", Name: "web"}
	for _, key := range []client.ObjectKey{webKey, webKey, other} {
		r.next("Pod", key)
	}
	r.next("Service", webKey)
	r.clear("Service", other) // was never refused
	if diff := cmp.Diff(map[string]int{"Pod": 2, "Service": 1}, counts); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	r.clear("Pod", webKey)
	r.clear("Pod", webKey)
	if counts["Pod"] != 1 {
		t.Errorf("%d pods are refused after one of two is not any more", counts["Pod"])
	}
	r.end()
	r.next("Pod", webKey) // by a worker that was on its way
	if diff := cmp.Diff(map[string]int{"Pod": 0, "Service": 0}, counts); diff != "" {
		t.Errorf("refused, of a tenant that is gone (-want +got):\n%s", diff)
	}
}

func TestAllThatIsRefused(t *testing.T) {
	r := newRefusals(func(string, int) {})
	for range 2 {
		r.next("Pod", webKey)
		r.next("Service", webKey)
	}
	r.clear("Service", webKey)
	if diff := cmp.Diff([]objectKey{{"Pod", webKey}}, r.all(), cmp.AllowUnexported(objectKey{})); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestRefusedObjectsWait(t *testing.T) {
	r := newRefusals(func(string, int) {})
	other := client.ObjectKey{Namespace: "other", Name: "web"}
	expect := func(when string, want bool) {
		t.Helper()
		if got := r.has("Pod", webKey); got != want {
			t.Errorf("%s it waits: %t", when, got)
		}
	}
	expect("never refused,", false)
	r.next("Service", webKey)
	r.next("Pod", other)
	expect("when others are refused,", false)
	r.next("Pod", webKey)
	r.next("Pod", webKey)
	expect("refused,", true)
	r.clear("Pod", other)
	expect("when another is accepted,", true)
	r.clear("Pod", webKey)
	expect("accepted,", false)
}

package pending

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

func TestRefusedObjectsWaitLongerEachTime(t *testing.T) {
	r := NewRejections(func(string, int) {})
	var got []time.Duration
	for range 9 {
		got = append(got, r.Next("Pod", kindstest.WebKey()))
	}
	s := time.Second
	want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestRefusedObjectsWaitEachForItself(t *testing.T) {
	r := NewRejections(func(string, int) {})
	other := client.ObjectKey{Namespace: "other", Name: "web"}
	r.Clear("Pod", kindstest.WebKey()) // was never refused
	r.Next("Pod", kindstest.WebKey())
	if got := r.Next("Service", kindstest.WebKey()); got != rejectedFirst {
		t.Errorf("a service of that name waits %s", got)
	}
	if got := r.Next("Pod", other); got != rejectedFirst {
		t.Errorf("a pod of that name in another namespace waits %s", got)
	}
	r.Clear("Service", kindstest.WebKey())
	if got := r.Next("Pod", kindstest.WebKey()); got != 2*rejectedFirst {
		t.Errorf("after another was accepted, the pod waits %s", got)
	}
	r.Clear("Pod", kindstest.WebKey())
	if got := r.Next("Pod", kindstest.WebKey()); got != rejectedFirst {
		t.Errorf("after it was accepted, the pod waits %s", got)
	}
	r.Clear("Pod", kindstest.WebKey())
	r.Clear("Pod", other)
	if len(r.known) != 0 {
		t.Errorf("%d objects are remembered that nobody refuses", len(r.known))
	}
}

func TestRefusedObjectsAreCountedOnce(t *testing.T) {
	counts := map[string]int{}
	r := NewRejections(func(kind string, by int) { counts[kind] += by })
	other := client.ObjectKey{Namespace: "other", Name: "web"}
	for _, key := range []client.ObjectKey{kindstest.WebKey(), kindstest.WebKey(), other} {
		r.Next("Pod", key)
	}
	r.Next("Service", kindstest.WebKey())
	r.Clear("Service", other) // was never refused
	if diff := cmp.Diff(map[string]int{"Pod": 2, "Service": 1}, counts); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	r.Clear("Pod", kindstest.WebKey())
	r.Clear("Pod", kindstest.WebKey())
	if counts["Pod"] != 1 {
		t.Errorf("%d pods are refused after one of two is not any more", counts["Pod"])
	}
	r.End()
	r.Next("Pod", kindstest.WebKey()) // by a worker that was on its way
	if diff := cmp.Diff(map[string]int{"Pod": 0, "Service": 0}, counts); diff != "" {
		t.Errorf("refused, of a tenant that is gone (-want +got):\n%s", diff)
	}
}

func TestAllThatIsRefused(t *testing.T) {
	r := NewRejections(func(string, int) {})
	for range 2 {
		r.Next("Pod", kindstest.WebKey())
		r.Next("Service", kindstest.WebKey())
	}
	r.Clear("Service", kindstest.WebKey())
	if diff := cmp.Diff([]kinds.ObjectKey{{Kind: "Pod", Key: kindstest.WebKey()}}, r.All()); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestRefusedObjectsWait(t *testing.T) {
	r := NewRejections(func(string, int) {})
	other := client.ObjectKey{Namespace: "other", Name: "web"}
	expect := func(when string, want bool) {
		t.Helper()
		if got := r.Has("Pod", kindstest.WebKey()); got != want {
			t.Errorf("%s it waits: %t", when, got)
		}
	}
	expect("never refused,", false)
	r.Next("Service", kindstest.WebKey())
	r.Next("Pod", other)
	expect("when others are refused,", false)
	r.Next("Pod", kindstest.WebKey())
	r.Next("Pod", kindstest.WebKey())
	expect("refused,", true)
	r.Clear("Pod", other)
	expect("when another is accepted,", true)
	r.Clear("Pod", kindstest.WebKey())
	expect("accepted,", false)
}

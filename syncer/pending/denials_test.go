package pending

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

func TestHeldObjectsAreToldOnce(t *testing.T) {
	h := NewDenials(func(string, int) {})
	if told := h.Put("Pod", kindstest.WebKey()); told != "" {
		t.Errorf("one that was never held was told %q", told)
	}
	h.Note("Pod", kindstest.WebKey(), "full")
	if told := h.Put("Pod", kindstest.WebKey()); told != "full" {
		t.Errorf("it was told %q", told)
	}
	h.Clear("Pod", kindstest.WebKey())
	h.Note("Pod", kindstest.WebKey(), "late") // by a worker that was slower
	if h.Has("Pod", kindstest.WebKey()) {
		t.Error("one that goes down is held")
	}
	if told := h.Put("Pod", kindstest.WebKey()); told != "" {
		t.Errorf("held anew, it was told %q before", told)
	}
}

func TestHeldObjectsAreCountedOnce(t *testing.T) {
	counts := map[string]int{}
	h := NewDenials(func(kind string, by int) { counts[kind] += by })
	other := client.ObjectKey{Namespace: "other", Name: "web"}
	for _, key := range []client.ObjectKey{kindstest.WebKey(), kindstest.WebKey(), other} {
		h.Put("Pod", key)
	}
	h.Put("Service", kindstest.WebKey())
	h.Clear("Service", other) // was never held
	if diff := cmp.Diff(map[string]int{"Pod": 2, "Service": 1}, counts); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	h.Clear("Pod", kindstest.WebKey())
	h.Clear("Pod", kindstest.WebKey())
	if diff := cmp.Diff(1, counts["Pod"]); diff != "" {
		t.Errorf("held after one of two is not any more (-want +got):\n%s", diff)
	}
	if got := len(h.All()); got != 2 {
		t.Errorf("%d objects are tried again, want 2", got)
	}
	h.End()
	h.Put("Pod", kindstest.WebKey()) // by a worker that was on its way
	if diff := cmp.Diff(map[string]int{"Pod": 0, "Service": 0}, counts); diff != "" {
		t.Errorf("held, of a tenant that is gone (-want +got):\n%s", diff)
	}
}

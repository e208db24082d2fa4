package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestHeldObjectsAreToldOnce(t *testing.T) {
	h := newHeld(func(string, int) {})
	if told := h.put("Pod", webKey); told != "" {
		t.Errorf("one that was never held was told %q", told)
	}
	h.note("Pod", webKey, "full")
	if told := h.put("Pod", webKey); told != "full" {
		t.Errorf("it was told %q", told)
	}
	h.clear("Pod", webKey)
	h.note("Pod", webKey, "late") // by a worker that was slower
	if h.has("Pod", webKey) {
		t.Error("one that goes down is held")
	}
	if told := h.put("Pod", webKey); told != "" {
		t.Errorf("held anew, it was told %q before", told)
	}
}

func TestHeldObjectsAreCountedOnce(t *testing.T) {
	counts := map[string]int{}
	h := newHeld(func(kind string, by int) { counts[kind] += by })
	other := client.ObjectKey{Namespace: "other", Name: "web"}
	for _, key := range []client.ObjectKey{webKey, webKey, other} {
		h.put("Pod", key)
	}
	h.put("Service", webKey)
	h.clear("Service", other) // was never held
	if diff := cmp.Diff(map[string]int{"Pod": 2, "Service": 1}, counts); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	h.clear("Pod", webKey)
	h.clear("Pod", webKey)
	if diff := cmp.Diff(1, counts["Pod"]); diff != "" {
		t.Errorf("held after one of two is not any more (-want +got):\n%s", diff)
	}
	if got := len(h.all()); got != 2 {
		t.Errorf("%d objects are tried again, want 2", got)
	}
	h.end()
	h.put("Pod", webKey) // by a worker that was on its way
	if diff := cmp.Diff(map[string]int{"Pod": 0, "Service": 0}, counts); diff != "" {
		t.Errorf("held, of a tenant that is gone (-want +got):\n%s", diff)
	}
}

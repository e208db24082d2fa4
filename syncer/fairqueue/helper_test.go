package fairqueue

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// tenantOf parses keys of the form tenant/name.
func tenantOf(key string) string {
	tenant, _, _ := strings.Cut(key, "/")
	return tenant
}

func at(priority int) priorityqueue.AddOpts {
	return priorityqueue.AddOpts{Priority: &priority}
}

// available reports whether Get would return at once.
func (q *Queue[T]) available() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lockedNext() != nil
}

// owing returns how many lanes owe.
func (q *Queue[T]) owing() int { return len(q.fast.owing) + len(q.slow.owing) }

// mustGet fails the test if Get would block.
func mustGet[T comparable](t *testing.T, q *Queue[T]) T {
	t.Helper()
	if !q.available() {
		t.Fatal("no key to get")
	}
	key, shutdown := q.Get()
	if shutdown {
		t.Fatal("the queue is shut down")
	}
	return key
}

// take gets and finishes n keys.
func take[T comparable](t *testing.T, q *Queue[T], n int) []T {
	t.Helper()
	keys := make([]T, 0, n)
	for range n {
		key := mustGet(t, q)
		q.Done(key)
		keys = append(keys, key)
	}
	return keys
}

// checkEmpty fails the test if the queue has any state.
func checkEmpty[T comparable](t *testing.T, q *Queue[T]) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	owing, seats := q.owing(), q.fast.seated()+q.slow.seated()
	if len(q.items) != 0 || len(q.lanes) != owing || len(q.configs) != 0 || len(q.delays) != 0 || seats != 0 ||
		q.ready != 0 || q.inFlight != 0 || q.fast.inFlight != 0 || q.slow.inFlight != 0 {
		t.Errorf("left behind: %d items, %d lanes (%d owe), %d configs, %d delays, %d seats, %d ready, %d in flight",
			len(q.items), len(q.lanes), owing, len(q.configs), len(q.delays), seats, q.ready, q.inFlight)
	}
}

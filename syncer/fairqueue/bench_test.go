package fairqueue

import (
	"fmt"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// request resembles the syncer's keys.
type request struct {
	tenant, namespace, name string
}

func (r request) lane() string { return r.tenant }

// requests returns n keys for each of many tenants, interleaved.
func requests(tenants, n int) []request {
	keys := make([]request, 0, tenants*n)
	for i := range n {
		for t := range tenants {
			keys = append(keys, request{fmt.Sprintf("tenant-%05d", t), "default", fmt.Sprintf("pod-%d", i)})
		}
	}
	return keys
}

// cycle processes a key in each iteration, beginning at first.
func cycle[Q workqueue.TypedRateLimitingInterface[request]](b *testing.B, q Q, keys []request, first int) {
	b.Helper()
	defer q.ShutDown()
	b.ReportAllocs()
	b.ResetTimer()
	for i := first; b.Loop(); i++ {
		q.Add(keys[i%len(keys)])
		key, _ := q.Get()
		q.Forget(key)
		q.Done(key)
	}
}

// BenchmarkCycle measures add, get, forget and done of a key. In "idle" no
// other key waits, so lanes come and go; in "busy" every lane has a backlog.
func BenchmarkCycle(b *testing.B) {
	for _, lanes := range []int{1, 100, 10_000} {
		keys := requests(lanes, 8)
		b.Run(fmt.Sprintf("idle/lanes=%d", lanes), func(b *testing.B) {
			cycle(b, New(request.lane, Options{}), keys, 0)
		})
		b.Run(fmt.Sprintf("busy/lanes=%d", lanes), func(b *testing.B) {
			q := New(request.lane, Options{})
			backlog := len(keys) / 2
			q.AddWithOpts(priorityqueue.AddOpts{}, keys[:backlog]...)
			cycle(b, q, keys, backlog)
		})
	}
}

// BenchmarkCycleStock is BenchmarkCycle/idle with controller-runtime's queue.
func BenchmarkCycleStock(b *testing.B) {
	for _, lanes := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			cycle(b, priorityqueue.New[request]("bench"), requests(lanes, 8), 0)
		})
	}
}

// BenchmarkAddBurst adds 10,000 keys of 100 tenants one by one to an empty
// queue, and drops the tenants.
func BenchmarkAddBurst(b *testing.B) {
	const tenants, each = 100, 100
	keys := requests(tenants, each)
	q := New(request.lane, Options{})
	b.ReportAllocs()
	for b.Loop() {
		for _, key := range keys {
			q.Add(key)
		}
		for _, key := range keys[:tenants] {
			q.Drop(key.tenant)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
}

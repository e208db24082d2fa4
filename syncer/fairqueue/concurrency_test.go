package fairqueue

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// countingLock counts how often it is locked. As the lock of a condition
// variable, it counts wakeups.
type countingLock struct {
	sync.Locker
	taken atomic.Int64
}

func (c *countingLock) Lock() {
	c.Locker.Lock()
	c.taken.Add(1)
}

// TestWakesNoMoreThanNeeded has many waiting workers, and counts those that
// wake.
func TestWakesNoMoreThanNeeded(t *testing.T) {
	const workers = 20
	var q *Queue[string]
	for name, tt := range map[string]struct {
		change func()
		want   int64
	}{
		"one key":              {func() { q.Add("a/1") }, 1},
		"the same key":         {func() { q.AddWithOpts(at(0), "a/1", "a/1", "a/1") }, 1},
		"below the cap":        {func() { q.AddWithOpts(at(0), "a/1", "a/2") }, 2},
		"above the cap":        {func() { q.AddWithOpts(at(0), "a/1", "a/2", "a/3", "a/4", "a/5", "a/6") }, 3},
		"more than workers":    {func() { addTenants(q, 2*workers) }, workers},
		"a paused tenant":      {func() { q.Pause("a"); q.AddWithOpts(at(0), "a/1", "a/2") }, 0},
		"a resumed tenant":     {func() { q.Pause("a"); q.AddWithOpts(at(0), "a/1", "a/2"); q.Resume("a") }, 2},
		"a delay that is over": {func() { q.AddAfter("a/1", time.Second) }, 1},
		"a delay that is not":  {func() { q.AddAfter("a/1", time.Hour) }, 0},
		"done, none waiting":   {func() { q.Add("a/1"); synctest.Wait(); q.Done("a/1") }, 1},
		"done, one held": {func() {
			q.Add("a/1")
			synctest.Wait()
			q.Add("a/1")
			q.Done("a/1")
		}, 2},
		"done, two above the cap": {func() {
			q.AddWithOpts(at(0), "a/1", "a/2", "a/3", "a/4", "a/5")
			synctest.Wait()
			q.Done("a/1")
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q = New(tenantOf, Options{Cap: 3})
				lock := &countingLock{Locker: &q.mu}
				q.work.L = lock
				for range workers {
					go q.Get()
				}
				synctest.Wait()
				tt.change()
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := lock.taken.Load(); got != tt.want {
					t.Errorf("%d workers woke, want %d", got, tt.want)
				}
				q.ShutDown()
			})
		})
	}
}

func addTenants(q *Queue[string], n int) {
	for i := range n {
		q.Add(fmt.Sprint(i, "/1"))
	}
}

// hammer is one run of TestConcurrent.
type hammer struct {
	*Queue[string]
	limit int32
	// wanted and seen are versions of each key: a late worker may see a newer
	// version, but the last must be seen.
	wanted, seen, busy map[string]*atomic.Int32
	inFlight           map[string]*atomic.Int32
}

func newHammer(limit int32, tenants, keys int) *hammer {
	h := &hammer{
		Queue: New(tenantOf, Options{Cap: int(limit)}), limit: limit,
		wanted: map[string]*atomic.Int32{}, seen: map[string]*atomic.Int32{},
		busy: map[string]*atomic.Int32{}, inFlight: map[string]*atomic.Int32{},
	}
	for i := range tenants {
		h.inFlight[fmt.Sprint(i)] = new(atomic.Int32)
		for k := range keys {
			key := fmt.Sprint(i, "/", k)
			h.wanted[key], h.seen[key], h.busy[key] = new(atomic.Int32), new(atomic.Int32), new(atomic.Int32)
		}
	}
	return h
}

// produce adds every key a few times, each time in another way.
func (h *hammer) produce(n int) {
	for i := range n {
		for key, version := range h.wanted {
			version.Add(1)
			o := at(i%3 - 1)
			if i%5 == 0 {
				o.After = time.Duration(i) * time.Microsecond
			}
			h.AddWithOpts(o, key)
		}
	}
}

// consume processes keys until the queue is shut down. It fails some of them.
func (h *hammer) consume(t *testing.T) {
	for n := 0; ; n++ {
		key, priority, shutdown := h.GetWithPriority()
		if shutdown {
			return
		}
		tenant := h.inFlight[tenantOf(key)]
		if h.busy[key].Add(1) != 1 {
			t.Errorf("two workers have %s", key)
		}
		if tenant.Add(1) > h.limit {
			t.Errorf("tenant of %s is above its cap", key)
		}
		h.seen[key].Store(h.wanted[key].Load())
		if n%7 == 0 {
			h.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, key)
		} else {
			h.Forget(key)
		}
		h.Charge(key, n%5)
		tenant.Add(-1)
		h.busy[key].Add(-1)
		h.Done(key)
	}
}

// disturb pauses and resumes tenants and changes weights.
func (h *hammer) disturb(n int) {
	for i := range n {
		for tenant := range h.inFlight {
			h.Pause(tenant)
			h.SetWeight(tenant, int32(i%4))
			h.Resume(tenant)
			h.Len()
			h.LaneLen(tenant)
		}
	}
}

// TestConcurrent runs producers, workers and changes of settings concurrently.
// In the end every version must have been seen, and no goroutine may be left
// waiting.
func TestConcurrent(t *testing.T) {
	for _, limit := range []int32{1, 3, 100} {
		t.Run(fmt.Sprint("cap=", limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHammer(limit, 10, 20)
				for range 8 {
					go h.consume(t)
					go h.produce(20)
				}
				go h.disturb(100)
				time.Sleep(time.Hour) // The bubble's clock advances when all goroutines wait.
				synctest.Wait()
				for key, wanted := range h.wanted {
					if got, want := h.seen[key].Load(), wanted.Load(); got != want {
						t.Errorf("%s: saw version %d of %d", key, got, want)
					}
				}
				h.ShutDown()
			})
		})
	}
}

// TestConcurrentDrop drops tenants while they are busy.
func TestConcurrentDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHammer(2, 4, 5)
		for range 6 {
			go h.consume(t)
			go h.produce(50)
		}
		for range 100 {
			for tenant := range h.inFlight {
				h.Drop(tenant)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for tenant := range h.inFlight {
			h.Drop(tenant)
		}
		checkEmpty(t, h.Queue)
		h.ShutDown()
	})
}

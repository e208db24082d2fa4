package fairqueue

import (
	"testing"
	"testing/synctest"
	"time"
)

// A bubble of synctest ends only when all its goroutines have ended, so every
// test here also checks for leaks.

func TestShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(tenantOf, Options{})
		ended := 0
		for range 10 {
			go func() {
				if _, shutdown := q.Get(); shutdown {
					q.mu.Lock()
					defer q.mu.Unlock()
					ended++
				}
			}()
		}
		q.AddAfter("a/1", time.Hour)
		synctest.Wait()
		if q.ShuttingDown() {
			t.Error("shuts down before ShutDown is called")
		}
		q.ShutDown()
		synctest.Wait()
		if ended != 10 || !q.ShuttingDown() {
			t.Errorf("%d of 10 workers ended, shutting down: %v", ended, q.ShuttingDown())
		}
	})
}

func TestAfterShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(tenantOf, Options{})
		q.AddWithOpts(at(0), "a/1", "a/2")
		q.AddAfter("a/3", time.Second)
		key := mustGet(t, q)
		q.ShutDown()
		q.ShutDown()
		q.Add("a/4")
		q.AddAfter("a/5", time.Second)
		q.AddRateLimited(key)
		q.Forget(key)
		q.Done(key)
		if q.timer.Stop() {
			t.Error("the timer still runs")
		}
		time.Sleep(time.Minute)
		q.expire() // as if the timer had just fired
		if key, shutdown := q.Get(); !shutdown {
			t.Errorf("handed out %s", key)
		}
		if q.Len() != 1 {
			t.Errorf("length %d, want the one from before", q.Len())
		}
		q.ShutDownWithDrain()
	})
}

func TestShutDownWithDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(tenantOf, Options{Cap: 1})
		q.Pause("paused")
		q.AddWithOpts(at(0), "a/1", "a/2", "b/1", "paused/1")
		q.AddAfter("a/3", time.Second)
		first := mustGet(t, q)
		q.Add(first)
		drained := drain(t, q)
		q.Add("b/2")
		q.AddRateLimited(first)
		time.Sleep(time.Minute)
		q.Done(first)
		take(t, q, 2)
		last := mustGet(t, q)
		synctest.Wait()
		if q.available() || *drained {
			t.Errorf("before the last is done: available %v, drained %v", q.available(), *drained)
		}
		q.Done(last)
		synctest.Wait()
		if _, shutdown := q.Get(); !*drained || !shutdown {
			t.Errorf("drained %v, shut down %v", *drained, shutdown)
		}
	})
}

// drain calls ShutDownWithDrain, which must wait, and returns a channel that
// reports its return.
func drain(t *testing.T, q *Queue[string]) *bool {
	t.Helper()
	drained := new(bool)
	go func() {
		q.ShutDownWithDrain()
		*drained = true
	}()
	synctest.Wait()
	if *drained {
		t.Fatal("did not wait")
	}
	return drained
}

// TestDrainEnds checks the events that end a drain besides a worker's Done.
func TestDrainEnds(t *testing.T) {
	for name, end := range map[string]func(*Queue[string]){
		"shut down": (*Queue[string]).ShutDown,
		"drop":      func(q *Queue[string]) { q.Drop("a") },
		"pause":     func(q *Queue[string]) { q.Pause("a") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New(tenantOf, Options{})
				q.Add("a/1")
				drained := drain(t, q)
				end(q)
				synctest.Wait()
				if !*drained {
					t.Error("still waiting")
				}
				q.ShutDown()
			})
		})
	}
}

package fairqueue

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(tenantOf, Options{})
		defer q.ShutDown()
		check := func(when string, want Stats) {
			t.Helper()
			if got := q.Stats(); got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		check("empty", Stats{})
		q.AddWithOpts(at(0), "a/1", "a/2", "b/1")
		q.AddAfter("c/1", time.Minute)
		check("three are due, of two tenants", Stats{Due: 3, Longest: 2, Delayed: 1, Busy: 2})

		q.Pause("a")
		check("one of them is paused", Stats{Due: 1, Paused: 2, Longest: 1, Delayed: 1, Busy: 1})
		key := mustGet(t, q)
		check("a worker has the other's key", Stats{Paused: 2, Delayed: 1, InFlight: 1, Busy: 1})
		q.Add(key)
		check("it is added once more meanwhile", Stats{Paused: 2, Delayed: 1, InFlight: 1, Busy: 1})
		q.Done(key)
		check("and due again", Stats{Due: 1, Paused: 2, Longest: 1, Delayed: 1, Busy: 1})

		time.Sleep(time.Minute)
		synctest.Wait()
		q.Resume("a")
		check("no tenant is paused", Stats{Due: 4, Longest: 2, Busy: 3})
		take(t, q, 4)
		check("all is done", Stats{})
	})
}

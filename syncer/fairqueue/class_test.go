package fairqueue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowTenantsHoldNoOthers has many tenants whose keys are never processed,
// and one whose keys are processed at once. It must get all workers of fast
// tenants, once the others are known to be slow.
func TestSlowTenantsHoldNoOthers(t *testing.T) {
	const slow, workers, slowWorkers = 100, 4, 10
	q := New(tenantOf, Options{Cap: 4, Workers: workers, SlowWorkers: slowWorkers})
	for i := range slow {
		for k := range 10 {
			q.Add(fmt.Sprintf("slow%d/%d", i, k))
		}
	}
	for q.available() {
		tenant := tenantOf(mustGet(t, q))
		if q.fast.inFlight == workers {
			q.SetSlow(tenant, true)
		}
	}
	for i := range slow {
		q.SetSlow(fmt.Sprint("slow", i), true)
	}
	for k := range 100 {
		q.Add(fmt.Sprint("well/", k))
	}
	for k := range 100 {
		key, _ := q.Get()
		for tenantOf(key) != "well" { // more workers of slow tenants
			key, _ = q.Get()
		}
		if key != fmt.Sprint("well/", k) {
			t.Fatalf("got %s at turn %d", key, k)
		}
		q.Done(key)
	}
	if q.slow.inFlight < slowWorkers || q.fast.inFlight != 0 {
		t.Errorf("%d keys of slow tenants in flight, %d of fast ones", q.slow.inFlight, q.fast.inFlight)
	}
}

// TestSlowShare expects slow tenants to have several workers each while few are
// slow, and one each when many are.
func TestSlowShare(t *testing.T) {
	const slowWorkers = 12
	for tenants, want := range map[int]string{1: "[4]", 2: "[4 2]", 3: "[4 2 1]", 6: "[1 1 1 1 1 1]", 12: "[1 1 1 1 1 1 1 1 1 1 1 1]"} {
		t.Run(fmt.Sprint(tenants, " tenants"), func(t *testing.T) {
			q := New(tenantOf, Options{Cap: 4, Workers: 1, SlowWorkers: slowWorkers})
			for i := range tenants {
				tenant := fmt.Sprintf("%02d", i)
				q.SetSlow(tenant, true)
				for k := range 10 {
					q.Add(fmt.Sprint(tenant, "/", k))
				}
				for tenants < 6 && q.available() {
					mustGet(t, q)
				}
			}
			for q.available() {
				mustGet(t, q)
			}
			var got []int
			for i := range tenants {
				got = append(got, q.InFlight(fmt.Sprintf("%02d", i)))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("in flight: %v, want %s", got, want)
			}
		})
	}
}

// TestWakesWhenATenantTurnsSlow has one tenant occupy all workers of fast
// tenants, while keys of others wait. When the tenant becomes slow, as many
// workers as it occupied must wake for the waiting keys.
func TestWakesWhenATenantTurnsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(tenantOf, Options{Cap: 2, Workers: 2, SlowWorkers: 4})
		got := make(chan string, 10)
		for range 6 {
			go func() {
				if key, shutdown := q.Get(); !shutdown {
					got <- key
				}
			}()
		}
		for _, key := range []string{"slow/1", "slow/2", "slow/3", "b/1", "c/1"} {
			q.Add(key)
			synctest.Wait()
		}
		if len(got) != 2 {
			t.Fatalf("%d keys in flight, want 2", len(got))
		}
		q.SetSlow("slow", true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(got) != 4 || q.InFlight("b") != 1 || q.InFlight("c") != 1 {
			t.Errorf("%d keys in flight, %d and %d of the others", len(got), q.InFlight("b"), q.InFlight("c"))
		}
		q.ShutDown()
	})
}

// TestClassesHaveClocksOfTheirOwn serves a slow tenant often, alone in its
// class. A fast tenant that comes afterwards must not wait longer for it.
func TestClassesHaveClocksOfTheirOwn(t *testing.T) {
	q := New(tenantOf, Options{Cap: 1, Workers: 1, SlowWorkers: 1})
	q.SetSlow("slow", true)
	for range 1000 {
		q.Add("slow/1")
		take(t, q, 1)
	}
	for k := range 20 {
		q.Add(fmt.Sprint("a/", k))
	}
	take(t, q, 5)
	q.Add("b/1")
	if keys := take(t, q, 3); tenantOf(keys[0]) != "b" && tenantOf(keys[1]) != "b" {
		t.Errorf("got %v, want b/1 among the first two", keys)
	}
}

// TestDebtsMove charges a tenant and moves it to the class of slow tenants and
// back. Its debt must stay the same.
func TestDebtsMove(t *testing.T) {
	q := New(tenantOf, Options{Cap: 1, Workers: 1, SlowWorkers: 1})
	q.Add("a/1")
	q.Charge(mustGet(t, q), 3)
	q.Done("a/1")
	q.SetSlow("a", true)
	q.SetSlow("a", false)
	if q.owing() != 1 {
		t.Fatalf("%d lanes owe", q.owing())
	}
	for k := range 3 {
		q.Add(fmt.Sprint("b/", k))
	}
	q.Add("a/2")
	if got := fmt.Sprint(take(t, q, 4)); got != "[b/0 b/1 b/2 a/2]" {
		t.Error(got)
	}
	q.Drop("a")
	q.Drop("b")
	checkEmpty(t, q)
}

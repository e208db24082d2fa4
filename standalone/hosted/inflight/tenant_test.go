package inflight

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const huge = 2 * tenantBudget

// take acquires for a request that must start.
func take(t *testing.T, tenant *Tenant, d demand) *grant {
	t.Helper()
	g, err := tenant.acquire(t.Context(), d)
	if err != nil {
		t.Fatalf("a request of kind %s and %d bytes: %v", d.kind, d.cost, err)
	}
	return g
}

// reject asserts that a request is rejected for a reason, after a time.
func reject(t *testing.T, tenant *Tenant, d demand, want Reason, after time.Duration) {
	t.Helper()
	begin := time.Now()
	_, err := tenant.acquire(t.Context(), d)
	if got, ok := errors.AsType[rejection](err); !ok || Reason(got) != want || time.Since(begin) != after {
		t.Errorf("got %v after %s, want %s after %s", err, time.Since(begin), want, after)
	}
}

func TestKindsHaveLimitsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := newHost(math.MaxInt64)
		tenant := host.Add("a", Config{Limits: Limits{Reads: 2, Writes: 1, Watches: 3}})
		other := host.Add("b", Config{Limits: Limits{Reads: 1}})
		for kind, limit := range []int{2, 1, 3, 1} {
			for range limit {
				take(t, tenant, demand{kind: Kind(kind), cost: 1})
			}
		}
		reject(t, tenant, demand{kind: Read}, ReasonReads, patience)
		reject(t, tenant, demand{kind: Write}, ReasonWrites, patience)
		reject(t, tenant, demand{kind: Watch}, ReasonWatches, 0) // the end of one is not near
		reject(t, tenant, demand{kind: WebhookCall}, ReasonWebhooks, patience)
		take(t, other, demand{kind: Read})
		take(t, other, demand{kind: Write})
		got := tenant.Usage()
		if got.Running != [kinds]int{2, 1, 3, 1} || got.Bytes != 7 || got.Rejected[ReasonReads] != 1 || got.Rejected[ReasonWatches] != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestMemoryIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := newHost(tenantBudget)
		greedy, other := host.Add("a", Config{}), host.Add("b", Config{})
		large := take(t, greedy, demand{cost: huge}) // more than there is
		reject(t, greedy, demand{cost: smallRequest + 1}, ReasonMemory, patience)
		for range (tenantBudget - largeBudget) / smallRequest {
			take(t, greedy, demand{cost: smallRequest}) // large requests leave memory to small ones
		}
		reject(t, greedy, demand{cost: 1}, ReasonMemory, patience)
		take(t, other, demand{cost: smallRequest})
		reject(t, other, demand{cost: smallRequest + 1}, ReasonHost, patience)
		large.release()
		take(t, other, demand{cost: largeBudget})
		take(t, greedy, demand{cost: 1})
	})
}

// TestWaitingRequestsStart: in order, as soon as they can.
func TestWaitingRequestsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := newHost(math.MaxInt64).Add("a", Config{Limits: Limits{Reads: 1}})
		first := take(t, tenant, demand{})
		var mu sync.Mutex
		var order []int
		for i := range 3 {
			go func() {
				g, err := tenant.acquire(t.Context(), demand{})
				if err != nil {
					t.Errorf("request %d: %v", i, err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				g.release()
			}()
			synctest.Wait()
		}
		if waiting := tenant.Usage().Waiting[Read]; waiting != 3 {
			t.Errorf("%d requests wait, want 3", waiting)
		}
		time.Sleep(patience / 2)
		first.release()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if fmt.Sprint(order) != "[0 1 2]" || tenant.Usage().Running[Read] != 0 || len(tenant.host.waiting) != 0 {
			t.Errorf("started in the order %v; %+v", order, tenant.Usage())
		}
	})
}

func TestAHigherLimitStartsWaitingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := newHost(math.MaxInt64).Add("a", Config{Limits: Limits{Writes: 1}})
		take(t, tenant, demand{kind: Write})
		go func() {
			time.Sleep(time.Second)
			tenant.SetLimits(Limits{Writes: 2})
		}()
		begin := time.Now()
		take(t, tenant, demand{kind: Write})
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("waited %s, want 1s", waited)
		}
		tenant.SetLimits(Limits{Writes: 1}) // below what is in flight
		reject(t, tenant, demand{kind: Write}, ReasonWrites, patience)
		if got := tenant.Usage().Running[Write]; got != 2 {
			t.Errorf("%d writes are in flight, want 2", got)
		}
	})
}

func TestQueuesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := newHost(math.MaxInt64).Add("a", Config{Limits: Limits{Reads: 1}})
		take(t, tenant, demand{})
		for range longestQueue {
			go func() { _, _ = tenant.acquire(t.Context(), demand{}) }()
		}
		synctest.Wait()
		reject(t, tenant, demand{}, ReasonReads, 0)
		take(t, tenant, demand{kind: Write})
		time.Sleep(2 * patience)
		synctest.Wait()
		if got := tenant.Usage(); got.Waiting[Read] != 0 || got.Rejected[ReasonReads] != longestQueue+1 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestAClientThatLeaves does not count as rejected, and blocks no other.
func TestAClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := newHost(math.MaxInt64).Add("a", Config{Limits: Limits{Reads: 1}})
		first := take(t, tenant, demand{})
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, err := tenant.acquire(ctx, demand{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		first.release()
		take(t, tenant, demand{})
		if got := tenant.Usage(); got.Rejected[ReasonReads] != 0 || got.Waiting[Read] != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestLargeReadsTakeTurns: their encoding leaves processors to others, and small
// requests do not wait for them.
func TestLargeReadsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := newHost(math.MaxInt64)
		host.largeAtATime = 2
		tenant := host.Add("a", Config{})
		list := demand{cost: smallRequest + 1}
		first := take(t, tenant, list)
		take(t, tenant, list)
		go func() {
			time.Sleep(time.Second)
			first.release()
		}()
		begin := time.Now()
		take(t, tenant, demand{cost: smallRequest})
		take(t, tenant, demand{kind: Write, cost: smallRequest + 1})
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("others waited %s", waited)
		}
		take(t, tenant, list)
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("a third list waited %s, want 1s", waited)
		}
	})
}

// TestTheHostPrefersTenantsThatTakeLess: a tenant with many waiting lists does
// not delay the list of another.
func TestTheHostPrefersTenantsThatTakeLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const list = 100 << 20
		host := newHost(2 * list)
		host.largeAtATime = math.MaxInt
		greedy, other := host.Add("a", Config{}), host.Add("b", Config{})
		running := []*grant{take(t, greedy, demand{cost: list}), take(t, greedy, demand{cost: list})}
		started := make(chan string, 3)
		wait := func(tenant *Tenant) {
			go func() {
				if _, err := tenant.acquire(t.Context(), demand{cost: list}); err == nil {
					started <- tenant.name
				}
			}()
			synctest.Wait()
		}
		wait(greedy)
		wait(greedy)
		wait(other)
		for i, want := range []string{"b", "a"} {
			running[i].release()
			synctest.Wait()
			if got := <-started; got != want {
				t.Errorf("a list of %s started, want one of %s", got, want)
			}
		}
	})
}

// TestARequestThatGrows gets what is left, and no more.
func TestARequestThatGrows(t *testing.T) {
	host := newHost(tenantBudget)
	tenant := host.Add("a", Config{})
	g := take(t, tenant, demand{kind: Write, cost: baseCost})
	if !g.grow(largeBudget) || g.grow(tenantBudget) {
		t.Error("it does not get what is there, or more than that")
	}
	if host.held != largeBudget {
		t.Errorf("the host counts %d bytes, want %d", host.held, largeBudget)
	}
	other := host.Add("b", Config{})
	if small := take(t, other, demand{kind: Write, cost: baseCost}); small.grow(largeBudget) || !small.grow(smallRequest) {
		t.Error("a request of another tenant gets what the host does not have, or not what is small")
	}
	g.release()
	if host.held != 0 || tenant.Usage().Bytes != 0 {
		t.Errorf("after its end %d and %d bytes count", host.held, tenant.Usage().Bytes)
	}
}

func TestARemovedTenantIsForgotten(t *testing.T) {
	host := newHost(math.MaxInt64)
	tenant := host.Add("a", Config{})
	g := take(t, tenant, demand{cost: huge})
	host.Remove(tenant)
	g.release()
	if len(host.tenants) != 0 || host.held != 0 {
		t.Errorf("%d tenants and %d bytes are left", len(host.tenants), host.held)
	}
}

func TestHostBudget(t *testing.T) {
	for limit, want := range map[int64]int64{math.MaxInt64: leastHostBudget, 1 << 30: leastHostBudget, 100 << 30: 25 << 30} {
		if got := hostBudget(limit); got != want {
			t.Errorf("with a limit of %d the budget is %d, want %d", limit, got, want)
		}
	}
}

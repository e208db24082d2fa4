package fairqueue

import (
	"fmt"
	"math"
	"testing"
)

// group is a number of tenants of the same weight.
type group struct {
	tenants int
	weight  int32
}

// newShared returns a queue of tenants that have more keys than their cap.
func newShared(limit int, groups []group) *Queue[string] {
	q := New(tenantOf, Options{Cap: limit})
	for _, g := range groups {
		for i := range g.tenants {
			tenant := fmt.Sprintf("%d-%d", g.weight, i)
			q.SetWeight(tenant, g.weight)
			for k := range limit + 1 {
				q.Add(fmt.Sprint(tenant, "/", k))
			}
		}
	}
	return q
}

// TestShares expects each tenant's service to be proportional to its weight,
// however often its cap interrupts it, as long as the cap suffices: a share of
// no more than cap of the workers.
func TestShares(t *testing.T) {
	const turns = 50_000
	for name, tt := range map[string]struct {
		workers, limit int
		groups         []group
	}{
		"ten to one":               {32, 8, []group{{10, 10}, {10, 1}}},
		"a hundred to one":         {32, 8, []group{{5, 100}, {20, 1}}},
		"just what the cap allows": {32, 8, []group{{2, 10}, {6, 2}, {8, 1}}},
		"three weights":            {16, 4, []group{{4, 7}, {4, 5}, {4, 1}}},
		"one of each tenant":       {4, 1, []group{{2, 2}, {6, 1}}},
		"one of few tenants":       {2, 1, []group{{1, 2}, {3, 1}}},
		"no more than the cap":     {8, 8, []group{{1, 50}, {1, 1}}},
		"more tenants than cap":    {32, 2, []group{{40, 3}, {40, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			total := 0
			for _, g := range tt.groups {
				total += g.tenants * int(g.weight)
			}
			got := map[string]int{}
			for _, tenant := range served(t, newShared(tt.limit, tt.groups), tt.workers, turns) {
				got[tenant]++
			}
			for _, g := range tt.groups {
				want := turns * float64(g.weight) / float64(total)
				for i := range g.tenants {
					tenant := fmt.Sprintf("%d-%d", g.weight, i)
					if n := float64(got[tenant]); math.Abs(n/want-1) > 0.01 {
						t.Errorf("tenant %d of weight %d was served %v times, want %.0f", i, g.weight, n, want)
					}
				}
			}
		})
	}
}

// TestSharesOfCosts expects tenants of the same weight to be served the less,
// the more their keys cost, whether they always wait, or come and go.
func TestSharesOfCosts(t *testing.T) {
	const rounds = 1_000
	costs := map[string]int{"cheap": 1, "middling": 3, "dear": 6}
	for name, limit := range map[string]int{"one at a time": 1, "several at a time": 4} {
		t.Run(name, func(t *testing.T) {
			q := New(tenantOf, Options{Cap: limit})
			for tenant := range costs {
				for k := range limit {
					q.Add(fmt.Sprint(tenant, "/", k))
				}
			}
			got := map[string]int{}
			for len(got) < len(costs) || got["dear"] < rounds {
				key := mustGet(t, q)
				tenant := tenantOf(key)
				got[tenant]++
				q.Charge(key, costs[tenant]-1)
				q.Done(key)
				q.Add(key)
			}
			for tenant, cost := range costs {
				want := float64(rounds*costs["dear"]) / float64(cost)
				if n := float64(got[tenant]); math.Abs(n/want-1) > 0.01 {
					t.Errorf("%s was served %v times, want %.0f", tenant, n, want)
				}
			}
		})
	}
}

// TestMakesUp has a worker keep the only key that a tenant of weight 3 may have
// in flight, for several turns of a tenant of weight 6. The tenant is due every
// two of these. It makes up for missed turns afterwards, except for no more
// than it gets in a round: the rest is lost.
func TestMakesUp(t *testing.T) {
	const rounds = 200
	for kept, lost := range map[int]int{0: 0, 3: 0, 9: 0, 11: 1, 13: 2, 1_001: 496} {
		t.Run(fmt.Sprint("kept for ", kept), func(t *testing.T) {
			q := newShared(1, []group{{1, 3}, {1, 6}})
			got := map[string]int{}
			hand := func() string {
				key := mustGet(t, q)
				got[tenantOf(key)]++
				q.Add(key)
				return key
			}
			q.Done(hand())
			slow := hand()
			for range kept {
				q.Done(hand())
			}
			q.Done(slow)
			for got["6-0"] < 6*rounds {
				q.Done(hand())
			}
			if want := 3*rounds - lost; got["3-0"] != want || tenantOf(slow) != "3-0" {
				t.Errorf("%s was kept; of weight 3 and 6: %v, want %d of the former", slow, got, want)
			}
		})
	}
}

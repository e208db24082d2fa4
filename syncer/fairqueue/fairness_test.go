package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestRounds takes random weights, and expects that in every run of as many
// keys as the sum of the weights, each tenant gets as many as its weight, while
// all are busy: with one worker and any cap, and with as many workers as the
// cap.
func TestRounds(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit, workers := 1+random.IntN(4), 1
		if seed%2 == 0 {
			workers = limit
		}
		t.Run(fmt.Sprintf("seed=%d,cap=%d,workers=%d", seed, limit, workers), func(t *testing.T) {
			q := New(tenantOf, Options{Cap: limit})
			weights := map[string]int{}
			round := 0
			for i := range 2 + random.IntN(5) {
				tenant := fmt.Sprint("t", i)
				weights[tenant] = 1 + random.IntN(6)
				round += weights[tenant]
				q.SetWeight(tenant, int32(weights[tenant]))
				for k := range limit + 1 {
					q.Add(fmt.Sprint(tenant, "/", k))
				}
			}
			checkRounds(t, served(t, q, workers, 8*round), weights, round)
		})
	}
}

// served returns the tenants in the order in which they are served. Every key
// is added again while in flight, and workers finish in the order in which they
// began: when all are busy, or when caps leave no key to hand out.
func served(t *testing.T, q *Queue[string], workers, turns int) (order []string) {
	t.Helper()
	var busy []string
	for range turns {
		for len(busy) == workers || (len(busy) > 0 && !q.available()) {
			q.Add(busy[0])
			q.Done(busy[0])
			busy = busy[1:]
		}
		key := mustGet(t, q)
		busy = append(busy, key)
		order = append(order, tenantOf(key))
	}
	return order
}

func checkRounds(t *testing.T, order []string, weights map[string]int, round int) {
	t.Helper()
	for start := 0; start+round <= len(order); start++ {
		got := map[string]int{}
		for _, tenant := range order[start : start+round] {
			got[tenant]++
		}
		for tenant, weight := range weights {
			if got[tenant] != weight {
				t.Fatalf("turns %d to %d gave %s %d, want %d: %v",
					start, start+round, tenant, got[tenant], weight, order[start:start+round])
			}
		}
	}
}

// TestHungTenant has workers that never finish a tenant's keys. They must stay
// few, and other tenants must be served as usual.
func TestHungTenant(t *testing.T) {
	q := New(tenantOf, Options{Cap: 2})
	q.SetWeight("hung", 100)
	for k := range 100 {
		q.Add(fmt.Sprint("hung/", k))
		q.Add(fmt.Sprint("well/", k))
	}
	well := 0
	for range 102 {
		if key := mustGet(t, q); tenantOf(key) == "well" {
			q.Done(key)
			well++
		}
	}
	if well != 100 || q.InFlight("hung") != 2 || q.available() {
		t.Errorf("%d of 100 keys served, %d in flight, more available: %v", well, q.InFlight("hung"), q.available())
	}
}

// TestNoLevelStarves keeps the highest level busy for ever.
func TestNoLevelStarves(t *testing.T) {
	q := New(tenantOf, Options{})
	q.AddWithOpts(at(-1), "a/low-1", "a/low-2")
	q.AddWithOpts(at(0), "a/normal-1", "a/normal-2")
	var lower []int
	for turn := 1; turn <= 5*share; turn++ {
		q.AddWithOpts(at(1), fmt.Sprint("a/", turn), fmt.Sprint("a/more-", turn))
		key, priority, _ := q.GetWithPriority()
		q.Done(key)
		if priority < 1 {
			lower = append(lower, turn)
		}
	}
	want := fmt.Sprint([]int{share, 2 * share, 3 * share, 4 * share})
	if fmt.Sprint(lower) != want {
		t.Errorf("the lower levels were served at turns %v, want %s", lower, want)
	}
}

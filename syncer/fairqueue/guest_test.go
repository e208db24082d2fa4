package fairqueue

import (
	"fmt"
	"math"
	"testing"
)

// TestComesAndGoes has a guest add one key at a time, some turns after its last
// was done, so that its lane is released in between. Others always have work,
// and a worker keeps the only key of one of them for long, so that it can make
// up for a round whenever it returns. The guest must neither wait longer than
// its weight allows nor get more than its share.
func TestComesAndGoes(t *testing.T) {
	for _, weight := range []int{1, 3, 10} {
		for _, away := range []int{0, 1, 7, 100} {
			t.Run(fmt.Sprintf("weight=%d,away=%d", weight, away), func(t *testing.T) {
				checkGuest(t, weight, away)
			})
		}
	}
}

func checkGuest(t *testing.T, weight, away int) {
	t.Helper()
	const turns, kept, others = 20_000, 5, 1 + 1 + 10 + 10
	q := newShared(1, []group{{2, 1}, {2, 10}, {1, 100}})
	q.SetWeight("guest", int32(weight))
	got := map[string]int{}
	slow, until, back, waited := "", 0, 0, 0
	for turn := range turns {
		if turn == until {
			q.Done(slow)
		}
		if turn == back {
			q.Add("guest/1")
			waited = 0
		}
		key := mustGet(t, q)
		tenant := tenantOf(key)
		got[tenant]++
		switch tenant {
		case "guest":
			q.Done(key)
			back = turn + 1 + away
			if most := others/weight + 4; waited > most {
				t.Fatalf("turn %d: the guest waited for %d turns of others, want at most %d", turn, waited, most)
			}
		case "100-0":
			q.Add(key)
			slow, until = key, turn+kept
		default:
			q.Add(key)
			q.Done(key)
			waited++
		}
	}
	share := float64(turns-got["100-0"]-got["guest"]) / others
	for tenant, weight := range map[string]float64{"1-0": 1, "1-1": 1, "10-0": 10, "10-1": 10} {
		if math.Abs(float64(got[tenant])-share*weight) > 2 {
			t.Errorf("tenant %s was served %d times, want %.0f", tenant, got[tenant], share*weight)
		}
	}
	guest, most := float64(got["guest"]), share*float64(weight)
	if guest > most+1 || (away == 0 && guest < most-1) {
		t.Errorf("the guest was served %.0f times, its share is %.0f", guest, most)
	}
	if want := turns / kept; got["100-0"] != want {
		t.Errorf("the tenant that its cap interrupts was served %d times, want %d", got["100-0"], want)
	}
}

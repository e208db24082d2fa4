package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

func TestBudget(t *testing.T) {
	for _, tt := range []struct {
		interval time.Duration
		tenants  int
		want     time.Duration
	}{
		{time.Minute, 0, 15 * time.Second},
		{time.Minute, 1, 15 * time.Second},
		{time.Minute, 100, 150 * time.Millisecond},
		{time.Second, 10_000, leastBudget},
	} {
		if got := budgetOf(tt.interval, tt.tenants); got != tt.want {
			t.Errorf("%v for %d tenants: %v, want %v", tt.interval, tt.tenants, got, tt.want)
		}
	}
}

// TestPatrolGoesOnWhereItEnded: with a budget for one object, as many rounds as there are objects find each difference once.
func TestPatrolGoesOnWhereItEnded(t *testing.T) {
	const objects = 20
	var tenant []client.Object
	for i := range objects {
		one := kindstest.Settings()
		one.Name = fmt.Sprint("settings-", i)
		tenant = append(tenant, one)
	}
	s, there := standing(tenant, nil)
	found, rounds := map[client.ObjectKey]int{}, 0
	for again := true; again; again = !s.beat.ended() {
		rounds++
		for _, keys := range s.compareAll(t.Context(), 0) {
			for _, key := range keys {
				found[key]++
			}
		}
	}
	if len(found) != objects || rounds < objects {
		t.Errorf("found %d of %d objects in %d rounds", len(found), objects, rounds)
	}
	for key, times := range found {
		if times != 1 {
			t.Errorf("%s was found %d times", key, times)
		}
	}
	if postponed := testutil.ToFloat64(s.engine.metrics.patrolPostponed); int(postponed) != rounds-1 {
		t.Errorf("%v rounds were postponed, want %d", postponed, rounds-1)
	}

	s.compareAll(t.Context(), 0)
	there.ill = true
	if s.compareAll(t.Context(), time.Hour); !s.beat.ended() {
		t.Error("a tenant that did not answer is compared from the middle")
	}
}

// newUnseenMetrics makes metrics that are registered nowhere else.
func newUnseenMetrics() *Metrics {
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	return m
}

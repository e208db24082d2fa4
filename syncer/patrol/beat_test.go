package patrol

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/caches/cachestest"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
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

// still is a tenant's cluster that answers unless it is ill.
type still struct {
	session.TenantCluster
	ill bool
}

func (s *still) Healthy() bool { return !s.ill }

// all is a differ that finds a difference in every object.
type all struct{}

func (all) Differs(context.Context, *kinds.Kind, client.ObjectKey) (bool, error) { return true, nil }

// patrolled returns a tenant that has these objects, without copies.
func patrolled(t *testing.T, has []client.Object) (*Tenant, *still) {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	there, k := &still{}, kindstest.Typed(kindstest.Needed())
	tenant, super := cachestest.NewReader(), cachestest.NewReader()
	cachestest.Hold(tenant, k, has...)
	cachestest.Hold(super, k)
	s := session.Assemble(
		t.Context(), &session.SuperCluster{Caches: map[kinds.Source]*caches.Reader{kinds.Copies: super}}, kindstest.Blue(),
		&session.TenantObjects{Cluster: there, Cache: tenant, TenantRecent: caches.NewRecent()},
	)
	s.Pending = pending.NewObjects(func(string, pending.State, int) {})
	s.AddKind(k)
	s.Begun.Store(true)
	return NewTenant(s, all{}, all{}, nil, metrics), there
}

// TestPatrolGoesOnWhereItEnded: with a budget for one object, as many rounds as
// there are objects find each difference once.
func TestPatrolGoesOnWhereItEnded(t *testing.T) {
	const objects = 20
	var tenant []client.Object
	for i := range objects {
		one := kindstest.Settings()
		one.Name = fmt.Sprint("settings-", i)
		tenant = append(tenant, one)
	}
	s, there := patrolled(t, tenant)
	found, rounds := map[client.ObjectKey]int{}, 0
	for again := true; again; again = !s.beat.ended() {
		rounds++
		for _, keys := range s.Compare(t.Context(), 0) {
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
	if postponed := testutil.ToFloat64(s.metrics.postponed); int(postponed) != rounds-1 {
		t.Errorf("%v rounds were postponed, want %d", postponed, rounds-1)
	}

	s.Compare(t.Context(), 0)
	there.ill = true
	if s.Compare(t.Context(), time.Hour); !s.beat.ended() {
		t.Error("a tenant that did not answer is compared from the middle")
	}
}

package provider

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var evening = time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC)

func TestDue(t *testing.T) {
	const interval = 10 * time.Minute
	for name, tc := range map[string]struct {
		sleeper sleeper
		want    time.Time
	}{
		"nothing changed":       {sleeper{asleep: true, since: evening}, time.Time{}},
		"seen before it slept":  {sleeper{asleep: true, since: evening, urgent: evening, other: evening.Add(-1)}, time.Time{}},
		"it is awake":           {sleeper{since: evening, urgent: evening.Add(time.Hour)}, time.Time{}},
		"a pod ended":           {sleeper{asleep: true, since: evening, urgent: evening.Add(time.Second)}, evening.Add(time.Second)},
		"a status changed":      {sleeper{asleep: true, since: evening, other: evening.Add(time.Second)}, evening.Add(time.Second)},
		"a status changed, too": {sleeper{asleep: true, since: evening, other: evening.Add(1), woken: evening.Add(-time.Minute)}, evening.Add(9 * time.Minute)},
		"both": {
			sleeper{asleep: true, since: evening, other: evening.Add(1), urgent: evening.Add(2), woken: evening.Add(-time.Minute)},
			evening.Add(2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.sleeper.due(interval); !got.Equal(tc.want) {
				t.Errorf("due at %s, want %s", got, tc.want)
			}
		})
	}
}

// TestACrashLoopKeepsNothingAwake: a tenant is woken for changes of a status
// once in an interval, and at once when a pod ends.
func TestACrashLoopKeepsNothingAwake(t *testing.T) {
	const interval = 10 * time.Minute
	s := newSleepers(interval)
	if due := s.sleep("red", red, evening); !due.IsZero() {
		t.Fatalf("due at %s", due)
	}
	changed := func(after time.Duration, urgent, want bool) {
		t.Helper()
		vc, earlier := s.change("red", evening.Add(after), urgent)
		if vc != red || earlier != want {
			t.Errorf("after %s: %s, earlier %t", after, vc, earlier)
		}
	}
	changed(-time.Minute, false, false)
	changed(time.Minute, false, true)
	changed(2*time.Minute, false, false)
	s.wake("red", evening.Add(time.Minute))
	s.awake("red")
	changed(3*time.Minute, true, false)

	again := evening.Add(4 * time.Minute)
	s.sleep("red", red, again)
	changed(5*time.Minute, false, true)
	if due := s.sleep("red", red, again); !due.Equal(evening.Add(11 * time.Minute)) {
		t.Errorf("due at %s", due)
	}
	changed(6*time.Minute, true, true)
	if due := s.sleep("red", red, again); !due.Equal(evening.Add(6 * time.Minute)) {
		t.Errorf("due at %s", due)
	}
	s.wake("red", evening.Add(6*time.Minute))
	if woken := s.tenants["red"].woken; !woken.Equal(evening.Add(time.Minute)) {
		t.Errorf("an urgent wake delays the next one that is not: %s", woken)
	}
}

// TestAChangeBeforeTheTenantIsKnown: a syncer that starts may see what ended
// before it reads the VirtualCluster.
func TestAChangeBeforeTheTenantIsKnown(t *testing.T) {
	s := newSleepers(time.Minute)
	if _, earlier := s.change("red", evening.Add(time.Second), true); earlier {
		t.Error("a tenant that is not known to sleep is woken")
	}
	if due := s.sleep("red", red, evening); !due.Equal(evening.Add(time.Second)) {
		t.Errorf("due at %s", due)
	}
	s.forget(red)
	if len(s.tenants) != 0 {
		t.Errorf("still known: %v", s.tenants)
	}
}

// TestOldChangesAreForgotten: the copies of tenants that were deleted leave
// nothing.
func TestOldChangesAreForgotten(t *testing.T) {
	s := newSleepers(time.Minute)
	s.sleep("red", red, evening)
	for i := range 10 * mostIdle {
		s.change(fmt.Sprint("gone-", i), evening, true)
	}
	if len(s.tenants) > mostIdle+1 || s.tenants["red"] == nil {
		t.Errorf("%d tenants, red among them: %t", len(s.tenants), s.tenants["red"] != nil)
	}
	if s.tenants["red"].vc != (types.NamespacedName{Name: "red"}) {
		t.Errorf("red is %s", s.tenants["red"].vc)
	}
}

package caches

import (
	"testing"
	"time"
)

func TestExpiring(t *testing.T) {
	const lifetime = time.Minute
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := start.Add
	for name, tc := range map[string]struct {
		puts map[time.Duration]string
		key  string
		at   time.Duration
		want bool
	}{
		"no entry":                      {nil, "a", 0, false},
		"another entry":                 {map[time.Duration]string{0: "b"}, "a", 0, false},
		"an entry at the end":           {map[time.Duration]string{0: "a"}, "a", lifetime, true},
		"an expired entry":              {map[time.Duration]string{0: "a"}, "a", lifetime + 1, false},
		"an entry of the generation":    {map[time.Duration]string{0: "b", 40 * time.Second: "a", 70 * time.Second: "c"}, "a", 100 * time.Second, true},
		"a renewed entry":               {map[time.Duration]string{0: "a", lifetime: "a"}, "a", 2 * lifetime, true},
		"a renewed entry that expired":  {map[time.Duration]string{0: "a", lifetime: "a"}, "a", 2*lifetime + 1, false},
		"the expired of two an hour on": {map[time.Duration]string{0: "a", time.Hour: "b"}, "a", time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Expiring[string, int]{Lifetime: lifetime, Most: 10}
			for d := time.Duration(0); d <= time.Hour; d += 10 * time.Second {
				if key, ok := tc.puts[d]; ok {
					e.Put(key, int(d), after(d))
				}
			}
			if _, got := e.Get(tc.key, after(tc.at)); got != tc.want {
				t.Errorf("found: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestExpiringKeepsTheLatest(t *testing.T) {
	const most = 100
	e := &Expiring[int, int]{Lifetime: time.Hour, Most: most}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 100 * most {
		e.Put(i, i, now)
		if e.Len() > 2*most {
			t.Fatalf("%d entries are kept, more than twice %d", e.Len(), most)
		}
		for _, key := range []int{i, i - most + 1} {
			if got, ok := e.Get(key, now); key >= 0 && (!ok || got != key) {
				t.Fatalf("after %d entries, %d is missing", i+1, key)
			}
		}
	}
	e.Sweep(now.Add(3 * time.Hour))
	if e.Len() > 0 {
		t.Errorf("%d expired entries are kept", e.Len())
	}
}

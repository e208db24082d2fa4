package bench

import (
	"testing"
	"time"
)

// TestLookups tests that no lookup happens while pods are measured.
func TestLookups(t *testing.T) {
	one, other := target{namespace: "one"}, target{namespace: "other"}
	begin := time.Unix(1_700_000_000, 0)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	tests := map[string]struct {
		created    map[target][]float64
		now, lasts float64
		ready      float64
	}{
		"no lookup yet":                           {nil, 5, 10, 5},
		"cached throughout":                       {map[target][]float64{one: {0}}, 5, 10, 5},
		"forgotten":                               {map[target][]float64{one: {0}}, 40, 10, 40},
		"expires in the middle":                   {map[target][]float64{one: {0}}, 25, 10, 31},
		"expires now or later":                    {map[target][]float64{one: {0}}, 30.5, 10, 31},
		"one is cached throughout, the other not": {map[target][]float64{one: {0}, other: {20}}, 25, 10, 31},
		"both expire, one after the other":        {map[target][]float64{one: {0}, other: {2}}, 25, 10, 33},
		"cached since the first of many":          {map[target][]float64{one: {0, 10, 20}}, 25, 10, 31},
		"looked up again after expiry":            {map[target][]float64{one: {0, 31}}, 35, 10, 35},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := &lookups{}
			for in, times := range tt.created {
				for _, s := range times {
					l.created(in, at(s))
				}
			}
			if got := l.ready([]target{one, other}, at(tt.now), time.Duration(tt.lasts)*time.Second); !got.Equal(at(tt.ready)) {
				t.Errorf("ready after %v, want %vs", got.Sub(begin), tt.ready)
			}
		})
	}
}

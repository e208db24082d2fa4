package fairqueue

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	o := Options{BackoffBase: 5 * time.Millisecond, BackoffMax: time.Minute}
	for failures, want := range map[int]time.Duration{
		0: 5 * time.Millisecond, 1: 10 * time.Millisecond, 4: 80 * time.Millisecond,
		13: 40960 * time.Millisecond, 14: time.Minute, 62: time.Minute, 63: time.Minute, math.MaxInt: time.Minute,
	} {
		if got := o.backoff(failures); got != want {
			t.Errorf("after %d failures %v, want %v", failures, got, want)
		}
	}
	small := Options{BackoffBase: time.Hour, BackoffMax: time.Second}
	if got := small.backoff(0); got != time.Second {
		t.Errorf("a base above the maximum gives %v, want the maximum", got)
	}
}

func TestDefaults(t *testing.T) {
	want := Options{Cap: DefaultCap, BackoffBase: DefaultBackoffBase, BackoffMax: DefaultBackoffMax}
	for _, o := range []Options{{}, {Cap: -1, BackoffBase: -1, BackoffMax: -1}} {
		got := New(tenantOf, o).opts
		if got.Cap != want.Cap || got.BackoffBase != want.BackoffBase || got.BackoffMax != want.BackoffMax {
			t.Errorf("%+v became %+v, want %+v", o, got, want)
		}
	}
}

// TestDelayWakes has a worker wait for a delayed key, and expects it exactly
// when it is due; a longer delay that was set before must not defer it.
func TestDelayWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(tenantOf, Options{})
		defer q.ShutDown()
		start := time.Now()
		q.AddAfter("a/slow", time.Hour)
		q.AddAfter("a/fast", time.Second)
		q.AddAfter("a/never", 24*time.Hour)
		q.AddAfter("b/gone", time.Millisecond)
		q.Drop("b")
		for _, want := range []struct {
			key   string
			after time.Duration
		}{{"a/fast", time.Second}, {"a/slow", time.Hour}} {
			key, _ := q.Get()
			if after := time.Since(start); key != want.key || after != want.after {
				t.Errorf("%s after %v, want %s after %v", key, after, want.key, want.after)
			}
			q.Done(key)
		}
	})
}

// TestObserve expects the time since a key was due, not since it was added.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []Wait
		q := New(tenantOf, Options{Observe: func(w Wait) { got = append(got, w) }})
		defer q.ShutDown()
		q.SetWeight("b", 7)
		q.AddAfter("a/1", time.Second)
		q.AddWithOpts(at(-3), "b/1")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		take(t, q, 2)
		want := []Wait{{"b", 7, -3, 3 * time.Second}, {"a", 1, 0, 2 * time.Second}}
		if !slices.Equal(got, want) {
			t.Errorf("observed %v, want %v", got, want)
		}
	})
}

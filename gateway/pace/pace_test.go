package pace

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	p := New(0.001, 2, 10, time.Hour)
	for i, want := range []bool{true, true, false} {
		if got := p.Allows("jane"); got != want {
			t.Errorf("request %d of jane: got %v", i, got)
		}
	}
	if !p.Allows("joe") {
		t.Error("joe has no pace of his own")
	}
	for i := range 10 {
		p.Allows(fmt.Sprint(i))
	}
	if !p.Allows("jane") {
		t.Error("callers are remembered beyond the bound")
	}
}

// TestAtOnce: requests at the same time of a caller who is new have one limit.
func TestAtOnce(t *testing.T) {
	p := New(0.001, 3, 10, time.Hour)
	var allowed atomic.Int32
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if p.Allows("jane") {
				allowed.Add(1)
			}
		})
	}
	group.Wait()
	if allowed.Load() != 3 {
		t.Errorf("%d requests were allowed", allowed.Load())
	}
}

// TestBegin: only what counts at its end takes from the pace, and what has begun
// is as good as counted.
func TestBegin(t *testing.T) {
	p := New(0.001, 2, 10, time.Hour)
	begin := func() func(bool) {
		t.Helper()
		end, ok := p.Begin("jane")
		if !ok {
			t.Fatal("it is not allowed")
		}
		return end
	}
	for range 10 {
		begin()(false)
	}
	first, second := begin(), begin()
	if _, ok := p.Begin("jane"); ok {
		t.Error("more has begun than may count")
	}
	first(false)
	second(true)
	begin()(true)
	if _, ok := p.Begin("jane"); ok {
		t.Error("more counts than is allowed")
	}
}

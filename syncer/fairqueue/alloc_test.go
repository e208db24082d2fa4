package fairqueue

import "testing"

// TestAllocatesNothing processes keys one by one, so that lanes come and go.
func TestAllocatesNothing(t *testing.T) {
	keys := requests(100, 1)
	q := New(request.lane, Options{})
	i := 0
	allocs := testing.AllocsPerRun(1_000, func() {
		i++
		q.Add(keys[i%len(keys)])
		key, _ := q.Get()
		q.Charge(key, i%4)
		q.Forget(key)
		q.Done(key)
	})
	if allocs != 0 {
		t.Errorf("%v allocations a key", allocs)
	}
}

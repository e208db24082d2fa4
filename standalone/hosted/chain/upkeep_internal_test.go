package chain

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// repairs is what an upkeep has done.
type repairs struct {
	done, failures atomic.Int32
	// err is what the next repairs return.
	err atomic.Pointer[error]
	// takes is the time of a repair that is not interrupted.
	takes time.Duration
}

func (r *repairs) repair(ctx context.Context) error {
	select {
	case <-time.After(r.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	r.done.Add(1)
	if err := r.err.Load(); err != nil {
		return *err
	}
	return nil
}

// counts returns the numbers of repairs and failures when nothing is in progress.
func (r *repairs) counts() [2]int32 {
	synctest.Wait()
	return [2]int32{r.done.Load(), r.failures.Load()}
}

// newUpkeep returns an upkeep with a life that the test ends.
func newUpkeep(t *testing.T, r *repairs) (u *upkeep, die func()) {
	t.Helper()
	life, die := context.WithCancel(t.Context())
	return &upkeep{life: life, repair: r.repair, failed: func(error) { r.failures.Add(1) }}, die
}

func TestUpkeepCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := &repairs{takes: 3 * upkeepDelay}
		u, die := newUpkeep(t, r)
		defer die()
		u.request(0)
		time.Sleep(time.Minute)
		g.Expect(r.counts()).To(Equal([2]int32{0, 0}), "the tenant's objects have not been created yet")

		u.begin()
		for range 100 {
			u.request(upkeepDelay)
		}
		time.Sleep(2 * upkeepDelay)
		u.request(upkeepDelay) // while the objects are repaired
		time.Sleep(time.Minute)
		g.Expect(r.counts()).To(Equal([2]int32{2, 0}))
		u.end()
	})
}

func TestUpkeepRepeatsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := &repairs{}
		u, die := newUpkeep(t, r)
		defer die()
		err := errors.New("the store is full")
		r.err.Store(&err)
		u.begin()
		u.request(upkeepDelay)
		time.Sleep(upkeepDelay + 2*upkeepRetry + time.Second)
		g.Expect(r.counts()).To(Equal([2]int32{3, 3}))
		r.err.Store(nil)
		time.Sleep(10 * upkeepRetry)
		g.Expect(r.counts()).To(Equal([2]int32{4, 3}), "it is not repeated after a success")
		u.end()
	})
}

func TestUpkeepEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := &repairs{takes: time.Hour}
		u, die := newUpkeep(t, r)
		u.begin()
		u.request(0)
		time.Sleep(time.Second)
		u.request(time.Second) // due after the end
		die()
		u.end()
		g.Expect(r.counts()).To(Equal([2]int32{0, 0}), "an interruption is no failure")
		u.request(0)
		time.Sleep(time.Hour)
		g.Expect(r.counts()).To(Equal([2]int32{0, 0}))
	})
}

func TestUpkeepIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := &repairs{takes: time.Hour}
		u, die := newUpkeep(t, r)
		u.begin()
		u.request(0)
		time.Sleep(upkeepTimeout + time.Second)
		g.Expect(r.counts()).To(Equal([2]int32{0, 1}), "a repair that hangs is interrupted")
		die()
		u.end()
	})
}

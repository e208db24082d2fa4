package expressions_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/gateway/convert/expressions"
)

const red, blue = "team-1a2b3c-red", "team-1a2b3c-blue"

func TestPaceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		pace := expressions.NewPace()
		is := func(work int) func() int { return func() int { return work } }
		never := func() int {
			t.Error("it compiles")
			return 0
		}
		const toomuch = 10 * expressions.PerSecond
		g.Expect(pace.Do(t.Context(), red, is(expressions.Burst-1))).To(BeZero())
		g.Expect(pace.Do(t.Context(), red, is(toomuch))).To(BeZero())
		g.Expect(pace.Do(t.Context(), red, never)).To(BeNumerically("~", 10*time.Second, time.Millisecond))
		g.Expect(pace.Do(t.Context(), blue, is(1))).To(BeZero(), "it is no other tenant's work")
		time.Sleep(9 * time.Second)
		g.Expect(pace.Do(t.Context(), red, never)).To(BeNumerically("~", time.Second, time.Millisecond))
		time.Sleep(2 * time.Second)
		g.Expect(pace.Do(t.Context(), red, is(2*expressions.Burst))).To(BeZero(), "it does not wait for longer than for a full burst")
		g.Expect(pace.Do(t.Context(), red, never)).To(BeNumerically("<", expressions.Burst/expressions.PerSecond*time.Second))
	})
}

func TestPaceIsOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		pace := expressions.NewPace()
		var work sync.WaitGroup
		var compiling, most atomic.Int32
		for range 10 {
			work.Go(func() {
				_, err := pace.Do(t.Context(), red, func() int {
					most.Store(max(most.Load(), compiling.Add(1)))
					time.Sleep(time.Second)
					compiling.Add(-1)
					return 1
				})
				g.Expect(err).NotTo(HaveOccurred())
			})
		}
		work.Wait()
		g.Expect(most.Load()).To(BeEquivalentTo(1))
	})
}

func TestPaceEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		pace := expressions.NewPace()
		gone := errors.New("the client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		var work sync.WaitGroup
		work.Go(func() {
			_, err := pace.Do(t.Context(), red, func() int {
				time.Sleep(time.Minute)
				return 1
			})
			g.Expect(err).NotTo(HaveOccurred())
		})
		synctest.Wait()
		work.Go(func() {
			_, err := pace.Do(ctx, red, func() int {
				t.Error("it compiles")
				return 0
			})
			g.Expect(err).To(MatchError(gone))
		})
		synctest.Wait()
		cancel(gone)
		work.Wait()
	})
}

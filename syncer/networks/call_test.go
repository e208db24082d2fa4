package networks

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/panics"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

var readyAnswer = answer{state: network.State{Ready: true}}

// counted is a call that counts calls of the provider.
type counted struct {
	call

	times int
}

func newCall() *counted {
	return &counted{call: call{interval: time.Minute, answered: func(question, answer) {}}}
}

// ask asks about a generation, and returns the latest answer when all goroutines
// wait.
func (c *counted) ask(t *testing.T, generation int64, do func(context.Context) answer) *answer {
	t.Helper()
	c.call.ask(t.Context(), question{method: ensureMethod, uid: "uid", generation: generation}, func(ctx context.Context) answer {
		c.times++
		return do(ctx)
	})
	synctest.Wait()
	latest, _ := c.answer()
	return latest
}

func always(a answer) func(context.Context) answer {
	return func(context.Context) answer { return a }
}

func TestAnAnswerHoldsForAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCall()
		for range 3 {
			if latest := c.ask(t, 1, always(readyAnswer)); latest == nil || !latest.state.Ready {
				t.Fatalf("the answer is %v", latest)
			}
		}
		if _, again := c.answer(); c.times != 1 || again != time.Minute {
			t.Errorf("it was called %d times, and the answer holds for %s", c.times, again)
		}
		time.Sleep(time.Minute)
		if c.ask(t, 1, always(readyAnswer)); c.times != 2 {
			t.Errorf("after an interval: it was called %d times", c.times)
		}
		if c.ask(t, 2, always(readyAnswer)); c.times != 3 {
			t.Errorf("for another generation: it was called %d times", c.times)
		}
		c.renew()
		if c.ask(t, 2, always(readyAnswer)); c.times != 4 {
			t.Errorf("after a change: it was called %d times", c.times)
		}
	})
}

func TestNoFinalAnswerIsRetriedWithBackoff(t *testing.T) {
	for name, a := range map[string]answer{"not ready": {}, "an error": {err: errors.New("no cloud")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCall()
				for range 3600 {
					c.ask(t, 1, always(a))
					time.Sleep(time.Second)
				}
				if c.times < 50 || c.times > 80 {
					t.Errorf("it was called %d times in an hour, want about one a minute", c.times)
				}
			})
		})
	}
}

// TestAProviderThatHangs is called once, and does not keep its caller waiting.
func TestAProviderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, release := newCall(), make(chan struct{})
		hang := func(context.Context) answer { <-release; return readyAnswer }
		if latest := c.ask(t, 1, hang); latest != nil {
			t.Errorf("an answer before it answered: %v", latest)
		}
		for range 100 {
			time.Sleep(time.Second)
			c.ask(t, 1, hang)
			c.ask(t, 2, hang)
		}
		latest := c.ask(t, 2, hang)
		if latest == nil || !errors.Is(latest.err, errHangs) || c.times != 1 {
			t.Errorf("it was called %d times, and the answer is %v", c.times, latest)
		}
		close(release)
		synctest.Wait()
		if latest := c.ask(t, 2, always(readyAnswer)); latest == nil || !latest.state.Ready || c.times != 2 {
			t.Errorf("after it returned: it was called %d times, and the answer is %v", c.times, latest)
		}
	})
}

func TestAProviderThatWaitsForItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCall()
		wait := func(ctx context.Context) answer { <-ctx.Done(); return answer{err: ctx.Err()} }
		c.ask(t, 1, wait)
		time.Sleep(callTimeout)
		synctest.Wait()
		latest, _ := c.answer()
		if latest == nil || !errors.Is(latest.err, context.DeadlineExceeded) || c.isRunning() {
			t.Errorf("the answer is %v, and it runs: %t", latest, c.isRunning())
		}
	})
}

func TestAProviderThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latest := newCall().ask(t, 1, func(context.Context) answer { panic("no cloud") })
		if latest == nil || !errors.Is(latest.err, panics.ErrPanic) {
			t.Errorf("the answer is %v", latest)
		}
	})
}

// TestAnotherNetworkOfTheName: an answer about an earlier network is none about a
// later one.
func TestAnotherNetworkOfTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, release := newCall(), make(chan struct{})
		c.ask(t, 1, always(readyAnswer))
		c.call.ask(t.Context(), question{method: deleteMethod, uid: "uid"}, func(context.Context) answer { <-release; return answer{gone: true} })
		if latest, _ := c.answer(); latest != nil || c.removed("uid") {
			t.Errorf("the answer is %v, and the network is deleted: %t", latest, c.removed("uid"))
		}
		close(release)
		synctest.Wait()
		if !c.removed("uid") || c.removed("other") {
			t.Errorf("the network is deleted: %t, another one: %t", c.removed("uid"), c.removed("other"))
		}
	})
}

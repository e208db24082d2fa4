package bench

import (
	"context"
	"time"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// patrolEvery is a short interval, so that there are several rounds in a window; patrolNever a long one.
const patrolEvery, patrolNever = 2 * time.Second, time.Hour

// patrol measures what a round of the patrol costs in a full system, by what a syncer with many rounds uses more than one without.
func (w *world) patrol(ctx context.Context, s *report.Scenario) error {
	w.progress.sayf("what a round of the patrol costs")
	without, err := w.window(ctx, "--patrol="+patrolNever.String())
	if err != nil {
		return err
	}
	with, err := w.window(ctx, "--patrol="+patrolEvery.String())
	if err != nil {
		return err
	}
	rounds := max(with.rounds, 1)
	s.Add("syncer's CPU a round of the patrol", "ms", measure.Milliseconds(with.cpu-without.cpu)/rounds, int(with.rounds))
	writes, events, reads := sort(with.sent)
	s.Add("requests a round of the patrol", "", (writes+events+reads)/rounds, int(with.rounds)).Want("0")
	return w.restartSyncer(ctx)
}

// stretch is what a syncer did in a stretch of time.
type stretch struct {
	cpu    time.Duration
	sent   local.Requests
	opened float64
	rounds float64
	// end is what the syncer stood at then.
	end sample
}

// window starts a syncer with arguments, waits until it has settled, and measures it for as long as an idle one.
func (w *world) window(ctx context.Context, args ...string) (stretch, error) {
	if err := w.restartSyncer(ctx, args...); err != nil {
		return stretch{}, err
	}
	before, err := w.settleReady(ctx, len(w.fleet))
	if err != nil {
		return stretch{}, err
	}
	return w.stretch(ctx, before)
}

// stretch measures the syncer from before on, for the window of idle ones.
func (w *world) stretch(ctx context.Context, before sample) (stretch, error) {
	select {
	case <-time.After(w.opts.IdleWindow):
	case <-ctx.Done():
		return stretch{}, context.Cause(ctx)
	}
	after, err := w.syncer.sample(ctx)
	return stretch{
		cpu: after.CPU - before.CPU, sent: after.Requests.Since(before.Requests), opened: after.Opened - before.Opened,
		rounds: after.Patrols - before.Patrols, end: after,
	}, err
}

package bench

import (
	"context"
	"time"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// patrolEvery is short, for several rounds in a window; patrolNever is long.
const patrolEvery, patrolNever = 2 * time.Second, time.Hour

// patrol measures the cost of a patrol round in a full system, as the
// difference between a syncer with many rounds and one without.
func (w *world) patrol(ctx context.Context, s *report.Scenario) error {
	w.progress.sayf("cost of a patrol round")
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

// stretch is the activity of a syncer during some time.
type stretch struct {
	cpu    time.Duration
	sent   local.Requests
	opened float64
	rounds float64
	// end is the sample at the end.
	end sample
}

// window starts a syncer with arguments, waits until it has settled, and
// measures it for the idle window.
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

// stretch measures the syncer from a sample on, for the idle window.
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

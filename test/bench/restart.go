package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// restart measures how soon a syncer that starts in a full and otherwise synced
// system syncs pods that wait for it, and how much it costs to find out that
// nothing is to be done.
func (w *world) restart(ctx context.Context) error {
	tenants, err := w.tenants(ctx, w.opts.Tenants)
	if err != nil {
		return err
	}
	p := ofTenants(tenants)
	standing, err := w.newLoad(ctx, p)
	if err != nil {
		return err
	}
	defer standing.close()
	if err := standing.burst(ctx, all(tenants), "", w.opts.RestartPods, len(tenants)); err != nil {
		return err
	}
	// Events have the lowest priority. Those that are still to be synced do not
	// count for the restart.
	if _, err := w.settle(ctx); err != nil {
		return err
	}
	s := &report.Scenario{Name: "restart", Size: fmt.Sprintf("%d pods in %d tenants, 1 waiting in each", w.opts.RestartPods, len(tenants))}
	s.Notef("times are from the start of the process until the super cluster shows the waiting pod")
	for run := range w.opts.Runs {
		w.progress.sayf("run %d of %d", run+1, w.opts.Runs)
		if err := w.restartWaiting(ctx, s, p); err != nil {
			return err
		}
		if err := w.restartIdle(ctx, s); err != nil {
			return err
		}
	}
	if err := w.patrol(ctx, s); err != nil {
		return err
	}
	if err := standing.remove(ctx); err != nil {
		return err
	}
	return w.publish(s)
}

// restartWaiting restarts the syncer while a pod of each tenant waits for it.
func (w *world) restartWaiting(ctx context.Context, s *report.Scenario, p place) error {
	waiting, err := w.newLoad(ctx, p)
	if err != nil {
		return err
	}
	defer waiting.close()
	if err := w.stopSyncer(); err != nil {
		return err
	}
	n := len(p.targets)
	if err := waiting.pour(ctx, all(p.targets), "", n, n); err != nil {
		return err
	}
	if err := w.collectGarbage(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := w.launchSyncer(ctx); err != nil {
		return err
	}
	if err := waiting.await(ctx, "", shown, n); err != nil {
		return err
	}
	carried := waiting.moments("", copied)
	s.Add("first waiting pod synced", "s", carried[0].Sub(began).Seconds(), 1).Want("≤ 1 with 3000 pods in 50 tenants")
	s.Add("waiting pods of all tenants synced", "s", carried[n-1].Sub(began).Seconds(), n).Want("≤ 3 with 3000 pods in 50 tenants")
	return waiting.remove(ctx)
}

// restartIdle starts a syncer without work.
func (w *world) restartIdle(ctx context.Context, s *report.Scenario) error {
	if err := w.restartSyncer(ctx); err != nil {
		return err
	}
	now, err := w.settleReady(ctx, len(w.fleet))
	if err != nil {
		return err
	}
	writes, events, reads := sort(now.Requests)
	s.Add("writes when nothing waits", "", writes+events, 1).Want("0")
	s.Add("reads when nothing waits", "", reads, 1)
	s.Add("watches opened", "", now.Opened, 1)
	s.Add("syncer's CPU until it has found that out", "ms", measure.Milliseconds(now.CPU), 1)
	for _, request := range slices.Sorted(maps.Keys(writesOf(now.Requests))) {
		s.Notef("a write when nothing waits: %s", request)
	}
	return nil
}

// settleReady waits until a number of tenants are synced and the syncer sends
// no more requests.
func (w *world) settleReady(ctx context.Context, tenants int) (sample, error) {
	if err := w.awaitSyncer(ctx, func(now sample) bool { return now.Ready >= float64(tenants) }); err != nil {
		return sample{}, err
	}
	return w.settle(ctx)
}

// writesOf returns the requests that write.
func writesOf(sent local.Requests) local.Requests {
	out := maps.Clone(sent)
	maps.DeleteFunc(out, func(request string, n float64) bool {
		writes, events, _ := sort(local.Requests{request: n})
		return writes+events == 0
	})
	return out
}

package bench

import (
	"context"
	"fmt"

	"github.com/virtualcluster/virtualcluster/test/bench/report"
)

// following is the group of the measured pods.
const following = "following"

// light measures latency under a light load.
func (w *world) light(ctx context.Context) error {
	tenants, err := w.tenants(ctx, w.opts.Tenants)
	if err != nil {
		return err
	}
	direct, err := w.directly(ctx, len(tenants))
	if err != nil {
		return err
	}
	s := &report.Scenario{Name: "light", Size: fmt.Sprintf("%d pods, %g a second, in %d tenants", w.opts.LightPods, w.opts.Rate, len(tenants))}
	var directStages, viaStages stages
	for run := range w.opts.Runs {
		w.progress.sayf("run %d of %d", run+1, w.opts.Runs)
		straight, err := w.trickle(ctx, direct)
		if err != nil {
			return err
		}
		via, err := w.trickle(ctx, ofTenants(tenants))
		if err != nil {
			return err
		}
		all := via.report(s, "")[whole]
		all.P50.Want("≤ 18")
		all.P99.Want("≤ 60")
		straight.report(s, "directly: ")
		directStages = directStages.and(straight)
		viaStages = viaStages.and(via)
	}
	s.Charts = []*report.Chart{latencyChart("latency", "Latency under a light load", viaStages.lines(""), directStages.lines("directly: ", whole))}
	return w.publish(s)
}

// trickle creates pods at the rate of a light load, waits until they run, and
// deletes them.
func (w *world) trickle(ctx context.Context, p place) (stages, error) {
	l, err := w.newLoad(ctx, p)
	if err != nil {
		return stages{}, err
	}
	defer l.close()
	if err := l.lead(ctx, lasting(w.opts.LightPods, w.opts.Rate)); err != nil {
		return stages{}, err
	}
	if err := l.steady(ctx, all(p.targets), following, w.opts.LightPods, w.opts.Rate); err != nil {
		return stages{}, err
	}
	return l.stages(following), l.remove(ctx)
}

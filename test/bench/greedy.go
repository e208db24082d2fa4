package bench

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
)

const (
	// greedyTenants is the number of tenants that create all their pods at
	// once, greedyStreams the number of parallel streams of each.
	greedyTenants, greedyStreams = 2, 8
	// regular and greedy are the groups of pods.
	regular, greedy = "regular", "greedy"
)

// greedy measures how a burst of some tenants affects the others.
func (w *world) greedy(ctx context.Context) error {
	tenants, err := w.tenants(ctx, w.opts.Tenants)
	if err != nil {
		return err
	}
	direct, err := w.directly(ctx, len(tenants))
	if err != nil {
		return err
	}
	others := len(tenants) - greedyTenants
	s := &report.Scenario{Name: "greedy", Size: fmt.Sprintf("%d tenants with %d pods at once each, %d with %d each at %g a second in all",
		greedyTenants, w.opts.GreedyPods, others, w.opts.RegularPods, w.opts.Rate)}
	s.Notef("the figures are those of the regular tenants; alone means without the greedy ones")
	s.Notef("the super cluster's scheduler schedules pods in order of creation, so the greedy ones delay others there, as they do directly")
	var pooled [2]stages
	for run := range w.opts.Runs {
		w.progress.sayf("run %d of %d", run+1, w.opts.Runs)
		straight, err := w.compare(ctx, direct)
		if err != nil {
			return err
		}
		via, err := w.compare(ctx, ofTenants(tenants))
		if err != nil {
			return err
		}
		via.report(s, "")
		straight.report(s, "directly: ")
		pooled[0] = pooled[0].and(via.alone)
		pooled[1] = pooled[1].and(via.beside)
	}
	s.Charts = []*report.Chart{latencyChart("latency", "Latency of other tenants, with and without greedy ones",
		pooled[0].lines("alone: ", down, up, whole), pooled[1].lines("beside: ", down, up, whole))}
	if err := w.weights(ctx, s, tenants); err != nil {
		return err
	}
	return w.publish(s)
}

// comparison has the latencies of the same pods without and with greedy
// tenants.
type comparison struct{ alone, beside stages }

func (w *world) compare(ctx context.Context, p place) (c comparison, err error) {
	if c.alone, err = w.besideGreedy(ctx, p, 0); err != nil {
		return c, err
	}
	c.beside, err = w.besideGreedy(ctx, p, w.opts.GreedyPods)
	return c, err
}

// besideGreedy measures the pods of the regular tenants while each greedy
// tenant creates its own.
func (w *world) besideGreedy(ctx context.Context, p place, greedyPods int) (stages, error) {
	l, err := w.newLoad(ctx, p)
	if err != nil {
		return stages{}, err
	}
	defer l.close()
	numbers := all(p.targets)
	others := numbers[greedyTenants:]
	regularPods := len(others) * w.opts.RegularPods
	if err := l.lead(ctx, lasting(regularPods, w.opts.Rate)); err != nil {
		return stages{}, err
	}
	loads, loadsCtx := errgroup.WithContext(ctx)
	loads.Go(func() error {
		return l.burst(loadsCtx, numbers[:greedyTenants], greedy, greedyTenants*greedyPods, greedyTenants*greedyStreams)
	})
	loads.Go(func() error { return l.steady(loadsCtx, others, regular, regularPods, w.opts.Rate) })
	if err := loads.Wait(); err != nil {
		return stages{}, err
	}
	return l.stages(regular), l.remove(ctx)
}

// report adds the rows of a run.
func (c comparison) report(s *report.Scenario, before string) {
	alone := c.alone.report(s, before+"alone: ")
	beside := c.beside.report(s, before+"beside: ")
	goals := map[string]string{down: "≤ 1.5", up: "≤ 1.5"}
	for _, part := range c.alone.parts() {
		ratio := latest(beside[part.name]) / max(latest(alone[part.name]), measure.Milliseconds(finest))
		s.Add(before+"beside to alone, "+part.name+" p50", "", ratio, len(part.times)).Want(goals[part.name])
	}
}

// latest returns the median of the last run.
func latest(l *report.Latency) float64 { return l.P50.Runs[len(l.P50.Runs)-1] }

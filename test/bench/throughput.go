package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
)

// throughput measures the maximum throughput at each size.
func (w *world) throughput(ctx context.Context) error {
	sizes, err := w.opts.throughputs()
	if err != nil {
		return err
	}
	for _, size := range sizes {
		if err := w.throughputOf(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// throughputOf measures throughput at a size. Each run creates the pods
// directly, then in tenants.
func (w *world) throughputOf(ctx context.Context, size size) error {
	tenants, err := w.tenants(ctx, size.tenants)
	if err != nil {
		return err
	}
	direct, err := w.directly(ctx, size.tenants)
	if err != nil {
		return err
	}
	s := &report.Scenario{Name: "throughput", Size: size.String()}
	s.Notef("one stream of creations a tenant, without a rate limit; the same pods in as many namespaces are created directly before each run")
	file := fmt.Sprintf("%d-%d-", size.pods, size.tenants)
	chart := &report.Chart{Name: file + "pods", Title: "Pods that run, " + size.String(), X: "seconds", Y: "pods"}
	var directStages, viaStages stages
	for run := range w.opts.Runs {
		w.progress.sayf("%s: run %d of %d", size, run+1, w.opts.Runs)
		straight, err := w.flood(ctx, direct, size)
		if err != nil {
			return err
		}
		via, err := w.flood(ctx, ofTenants(tenants), size)
		if err != nil {
			return err
		}
		via.report(s, straight, size)
		directStages = directStages.and(straight.stages)
		viaStages = viaStages.and(via.stages)
		if run == 0 {
			chart.Lines = []report.Line{straight.growth("created directly"), via.growth("created in tenants")}
		}
	}
	s.Charts = []*report.Chart{
		chart, latencyChart(file+"latency", "Latency at maximum throughput, "+size.String(), viaStages.lines(""), directStages.lines("directly: ", whole)),
	}
	return w.publish(s)
}

// flood is the result of a load without a rate limit.
type flood struct {
	began  time.Time
	ran    []time.Time
	stages stages
	// removing is the time of the deletion, lag has the time from the deletion
	// of each super pod to that of the tenant's pod.
	removing time.Duration
	lag      []time.Duration
	// before, full and after are the usage of the syncer before the load, when
	// all pods ran, and when all were gone.
	before, full, after measure.Usage
}

// flood creates pods as fast as possible, waits until they run, and deletes
// them.
func (w *world) flood(ctx context.Context, p place, size size) (*flood, error) {
	l, err := w.newLoad(ctx, p)
	if err != nil {
		return nil, err
	}
	defer l.close()
	f := &flood{began: time.Now()}
	if f.before, err = w.syncer.usage(); err != nil {
		return nil, err
	}
	if err := l.burst(ctx, all(p.targets), "", size.pods, len(p.targets)); err != nil {
		return nil, err
	}
	if f.full, err = w.syncer.usage(); err != nil {
		return nil, err
	}
	f.ran, f.stages = l.moments("", p.running()), l.stages("")
	removal := time.Now()
	if err := l.remove(ctx); err != nil {
		return nil, err
	}
	f.removing, f.lag = time.Since(removal), l.spans("", superGone, gone)
	f.after, err = w.syncer.usage()
	return f, err
}

// rate returns the number of pods a second that came to run.
func (f *flood) rate() float64 {
	return float64(len(f.ran)) / f.ran[len(f.ran)-1].Sub(f.began).Seconds()
}

func (f *flood) growth(name string) report.Line { return report.Growth(name, f.began, f.ran) }

// report adds the rows of a run, compared with those of the same run directly.
func (f *flood) report(s *report.Scenario, direct *flood, size size) {
	n := size.pods
	s.Add("pods a second, directly", "", direct.rate(), n)
	s.Add("pods a second, by tenants", "", f.rate(), n)
	s.Add("ratio to direct", "", f.rate()/direct.rate(), n).Want("≥ 0.42")
	f.stages.report(s, "")
	direct.stages.report(s, "directly: ")
	s.Add("pods removed a second, directly", "", float64(n)/direct.removing.Seconds(), n)
	s.Add("pods removed a second, by tenants", "", float64(n)/f.removing.Seconds(), n)
	s.AddLatency("gone after the super pod", f.lag).P99.Want("≤ 100")
	each := func(cpu time.Duration) float64 { return measure.Milliseconds(cpu) / float64(n) }
	s.Add("syncer's CPU a pod, create to Running", "ms", each(f.full.CPU-f.before.CPU), n).Want("≤ 2")
	s.Add("syncer's CPU a pod, removal", "ms", each(f.after.CPU-f.full.CPU), n).Want("≤ 1")
	s.Add("syncer's memory with all pods", "MiB", float64(f.full.Resident)/measure.MiB, 1).Want("≤ 180 with 10000 pods in 20 tenants")
}

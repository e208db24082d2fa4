package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/version"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
)

// scenario measures one thing at one or more sizes.
type scenario struct {
	name string
	run  func(*world, context.Context) error
	// most is what there is at a time.
	most func(*Sizes) demand
}

// demand is what takes memory: tenants, each with a control plane, and the pods of all of them together.
type demand struct{ tenants, pods int }

// scenarios are all of them. Those with few tenants come first, since a control plane costs more than a scenario.
func scenarios() []scenario {
	return []scenario{
		{"idle", (*world).idle, func(*Sizes) demand { return demand{1, 0} }},
		{"churn", (*world).churn, func(s *Sizes) demand { return demand{s.ChurnTenants + 1, s.ChurnTenants} }},
		{"requests", (*world).requests, func(*Sizes) demand { return demand{1, 1} }},
		{"throughput", (*world).throughput, (*Sizes).mostThroughput},
		{"light", (*world).light, func(s *Sizes) demand { return demand{s.Tenants, s.LightPods} }},
		{"greedy", (*world).greedy, (*Sizes).mostGreedy},
		{"hung", (*world).hung, func(s *Sizes) demand { return demand{s.Tenants + 1, s.LightPods + s.HungPods} }},
		{"sleepy", (*world).sleepy, func(s *Sizes) demand { return demand{s.Tenants + 1, s.LightPods} }},
		{"hostile", (*world).hostile, func(s *Sizes) demand { return demand{s.Tenants + 1, s.LightPods + attackPods} }},
		{"restart", (*world).restart, func(s *Sizes) demand { return demand{s.Tenants, s.RestartPods} }},
		{"validation", (*world).validation, func(s *Sizes) demand { return demand{s.Tenants, s.Tenants * s.ValidationPods} }},
	}
}

// chosen are the scenarios that were asked for.
func (o *Options) chosen() []scenario {
	return slices.DeleteFunc(scenarios(), func(s scenario) bool {
		return len(o.Scenarios) > 0 && !slices.Contains(o.Scenarios, s.name)
	})
}

// scenarioNames are the names of all scenarios.
func scenarioNames() []string {
	all := scenarios()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.name
	}
	return names
}

// Run measures, shows tables on out and its progress on status, and writes results. What was measured before an error is written
// all the same.
func Run(ctx context.Context, opts Options, out, status io.Writer) (err error) {
	if err := opts.Validate(); err != nil {
		return err
	}
	if err := opts.checkMemory(); err != nil {
		return err
	}
	began := time.Now()
	results := filepath.Join(opts.Out, began.UTC().Format("20060102-150405"))
	if err := os.MkdirAll(results, 0o755); err != nil {
		return fmt.Errorf("making the directory for results: %w", err)
	}
	w := &world{opts: opts, out: out, results: results, progress: &progress{out: status, began: began}}
	w.report = &report.Report{Started: began.UTC(), Version: version.String(), Command: os.Args}
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // what else went wrong followed from it
		}
	}()
	defer func() { err = errors.Join(err, w.stop(context.WithoutCancel(ctx))) }()
	err = w.measure(ctx)
	w.report.Took = time.Since(began).Seconds()
	if len(w.report.Scenarios) > 0 {
		err = errors.Join(err, w.report.Write(results))
		w.progress.sayf("results are in %s", results)
	}
	return err
}

// measure runs the scenarios that were asked for.
func (w *world) measure(ctx context.Context) error {
	if err := w.start(ctx); err != nil {
		return err
	}
	w.report.Notes = []string{
		"the syncer, all control planes and the load generator share this machine",
		"each tenant runs a pod on each node throughout, but for idle ones",
	}
	if err := w.report.WriteHead(w.out); err != nil {
		return err
	}
	for _, s := range w.opts.chosen() {
		w.progress.enter(s.name)
		if err := s.run(w, ctx); err != nil {
			return fmt.Errorf("%s: %w; logs are in %s", s.name, err, w.results)
		}
	}
	w.progress.enter("")
	return nil
}

// publish adds what a scenario measured to the report, and shows it.
func (w *world) publish(s *report.Scenario) error {
	w.report.Scenarios = append(w.report.Scenarios, s)
	return s.WriteTable(w.out)
}

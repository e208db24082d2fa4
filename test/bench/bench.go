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

// scenario measures one aspect at one or more sizes.
type scenario struct {
	name string
	run  func(*world, context.Context) error
	// most returns the peak demand of the scenario.
	most func(*Sizes) demand
}

// demand determines the memory that a scenario needs: the number of tenants,
// each with a control plane, and of all their pods.
type demand struct{ tenants, pods int }

// scenarios lists all scenarios. Those with few tenants come first, since
// starting a control plane takes longer than a scenario.
func scenarios() []scenario {
	return []scenario{
		{"idle", (*world).idle, func(*Sizes) demand { return demand{1, 0} }},
		{"churn", (*world).churn, func(s *Sizes) demand { return demand{s.ChurnTenants + 1, s.ChurnTenants} }},
		{"networks", (*world).networks, func(s *Sizes) demand {
			return demand{s.NetworkTenants + 1, s.Networks + networksEach*s.NetworkTenants}
		}},
		{"requests", (*world).requests, func(*Sizes) demand { return demand{1, 1} }},
		{"throughput", (*world).throughput, (*Sizes).mostThroughput},
		{"light", (*world).light, func(s *Sizes) demand { return demand{s.Tenants, s.LightPods} }},
		{"greedy", (*world).greedy, (*Sizes).mostGreedy},
		{"hung", (*world).hung, func(s *Sizes) demand { return demand{s.Tenants + 1, s.LightPods + s.HungPods} }},
		{"sleepy", (*world).sleepy, func(s *Sizes) demand { return demand{s.Tenants + 1, s.LightPods} }},
		{"hostile", (*world).hostile, func(s *Sizes) demand { return demand{s.Tenants + 1, s.LightPods + s.AttackPods} }},
		{"restart", (*world).restart, func(s *Sizes) demand { return demand{s.Tenants, s.RestartPods} }},
		{"validation", (*world).validation, func(s *Sizes) demand { return demand{s.Tenants, s.Tenants * s.ValidationPods} }},
		{"projects", (*world).projects, func(*Sizes) demand { return demand{} }},
		{"converted", (*world).converted, func(s *Sizes) demand { return demand{1, s.ConvertedPods} }},
		{"gateway", (*world).gateway, func(*Sizes) demand { return demand{1, 0} }}, // last: its VirtualClusters stay
	}
}

// chosen returns the selected scenarios.
func (o *Options) chosen() []scenario {
	return slices.DeleteFunc(scenarios(), func(s scenario) bool {
		return len(o.Scenarios) > 0 && !slices.Contains(o.Scenarios, s.name)
	})
}

// scenarioNames returns the names of all scenarios.
func scenarioNames() []string {
	all := scenarios()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.name
	}
	return names
}

// Run runs the scenarios, prints tables to out and progress to status, and
// writes the results. After an error it still writes what it has measured.
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
		return fmt.Errorf("create the directory for results: %w", err)
	}
	w := &world{opts: opts, out: out, results: results, progress: &progress{out: status, began: began}}
	w.report = &report.Report{Started: began.UTC(), Version: version.String(), Command: os.Args}
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // other errors are consequences of it
		}
	}()
	defer func() { err = errors.Join(err, w.stop(context.WithoutCancel(ctx))) }()
	err = w.measure(ctx)
	w.report.Took = time.Since(began).Seconds()
	if len(w.report.Scenarios) > 0 {
		err = errors.Join(err, w.report.Write(results))
		w.progress.sayf("results: %s", results)
	}
	return err
}

// measure runs the selected scenarios.
func (w *world) measure(ctx context.Context) error {
	if err := w.start(ctx); err != nil {
		return err
	}
	w.report.Notes = []string{
		"the syncer, all control planes and the load generator share this machine",
		"except in idle, each tenant runs a pod on each node throughout",
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

// publish adds the result of a scenario to the report and prints it.
func (w *world) publish(s *report.Scenario) error {
	w.report.Scenarios = append(w.report.Scenarios, s)
	return s.WriteTable(w.out)
}

package bench

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// idle measures the cost of tenants without work. All of them share the control
// plane of the first: for the syncer each is a tenant with its own connections,
// watches and caches.
func (w *world) idle(ctx context.Context) error {
	tenants, err := w.emptyTenants(ctx, "idle", 0, 1)
	if err != nil {
		return err
	}
	s := &report.Scenario{Name: "idle", Size: strings.Trim(strings.ReplaceAll(fmt.Sprint(w.opts.Idle), " ", ", "), "[]") + " tenants"}
	s.Notef("the tenants have no pods; all share one control plane, to which each has connections, watches and caches of its own; the window is %s", w.opts.IdleWindow)
	resident := make([][]float64, w.opts.Runs)
	for _, n := range w.opts.Idle {
		more, err := w.sharing(ctx, tenants[0], len(tenants), n)
		if err != nil {
			return err
		}
		tenants = append(tenants, more...)
		for run := range w.opts.Runs {
			w.progress.sayf("%d idle, run %d of %d", n, run+1, w.opts.Runs)
			mib, err := w.idleOf(ctx, s, n)
			if err != nil {
				return err
			}
			resident[run] = append(resident[run], mib)
		}
	}
	w.reportIdle(s, resident)
	if err := w.removeTenants(ctx, tenants); err != nil {
		return err
	}
	return w.publish(s)
}

// mostWatches is the largest limit of a control plane for watches.
const mostWatches = 100_000

// sharing creates the tenants with numbers from first to last, which share the
// control plane of another one. For that control plane they are one user, with
// the watches of all.
func (w *world) sharing(ctx context.Context, of *local.Tenant, first, last int) ([]*local.Tenant, error) {
	kubeconfig, err := w.kubeconfigOf(ctx, of)
	if err != nil {
		return nil, err
	}
	was := of.VC.DeepCopy()
	of.VC.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{
		Limits: &tenancyv1alpha1.ControlPlaneLimits{ConcurrentWatches: new(int32(mostWatches))},
	}
	if err := w.super.Client.Patch(ctx, of.VC, client.MergeFrom(was)); err != nil {
		return nil, fmt.Errorf("raise the limits of tenant %s: %w", of.VC.Name, err)
	}
	made := make([]*local.Tenant, last-first)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(starting)
	for i := range made {
		group.Go(func() (err error) {
			made[i], err = w.external(ctx, fmt.Sprintf("idle-%03d", first+i), kubeconfig)
			return err
		})
	}
	return made, group.Wait()
}

// idleOf starts a syncer for a number of tenants, adds its usage to the rows,
// and returns its memory in MiB.
func (w *world) idleOf(ctx context.Context, s *report.Scenario, tenants int) (float64, error) {
	if err := w.restartSyncer(ctx); err != nil {
		return 0, err
	}
	before, err := w.settleReady(ctx, tenants)
	if err != nil {
		return 0, err
	}
	during, err := w.stretch(ctx, before)
	if err != nil {
		return 0, err
	}
	mib := float64(during.end.Resident) / measure.MiB
	seconds := w.opts.IdleWindow.Seconds()
	writes, events, reads := sort(during.sent)
	row := func(name, unit string, value float64) *report.Row {
		return s.Add(fmt.Sprintf("%d idle: %s", tenants, name), unit, value, 1)
	}
	row("memory", "MiB", mib)
	row("goroutines", "", during.end.Goroutines)
	row("open watches", "", during.end.Watches)
	row("CPU a second", "ms", measure.Milliseconds(during.cpu)/seconds)
	row("requests a minute", "", (writes+events+reads)*60/seconds).Want("0")
	row("watches opened again a minute", "", during.opened*60/seconds)
	return mib, nil
}

// reportIdle adds the cost of each additional tenant, from the smallest and the
// largest number of them, and a chart of the memory.
func (w *world) reportIdle(s *report.Scenario, resident [][]float64) {
	few, many := w.opts.Idle[0], w.opts.Idle[len(w.opts.Idle)-1]
	for _, run := range resident {
		each := (run[len(run)-1] - run[0]) / float64(many-few)
		s.Add("memory an idle tenant", "MiB", each, 1).Want("≤ 1.2")
	}
	line := report.Line{Name: "median of the runs"}
	for i, tenants := range w.opts.Idle {
		values := make([]float64, len(resident))
		for run := range resident {
			values[run] = resident[run][i]
		}
		line.Points = append(line.Points, report.Point{X: float64(tenants), Y: measure.Median(values)})
	}
	s.Charts = []*report.Chart{{
		Name: "memory", Title: "Memory of the syncer with idle tenants", X: "tenants", Y: "MiB resident", Lines: []report.Line{line},
	}}
}

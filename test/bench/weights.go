package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// finest is the shortest time that is used in a ratio: shorter ones are
	// mostly noise.
	finest = 100 * time.Microsecond
	// heavyWeight is the weight of every other tenant, the rest have
	// lightWeight.
	heavyWeight, lightWeight = 10, 1
)

// weights measures the service that tenants of different weights get while all
// have work: half of the pods are created in tenants of either weight while no
// syncer runs, which then has to prioritize.
func (w *world) weights(ctx context.Context, s *report.Scenario, tenants []*local.Tenant) error {
	s.Notef("service is measured while the pods of all tenants wait; half of them have weight %d, half weight %d", lightWeight, heavyWeight)
	if err := w.weigh(ctx, tenants, heavyWeight); err != nil {
		return err
	}
	for run := range w.opts.Runs {
		w.progress.sayf("weights, run %d of %d", run+1, w.opts.Runs)
		share, served, err := w.serve(ctx, ofTenants(tenants))
		if err != nil {
			return err
		}
		s.Add(fmt.Sprintf("service of weight %d to weight %d", heavyWeight, lightWeight), "", share, served).Want("10")
	}
	return w.weigh(ctx, tenants, lightWeight)
}

// weigh sets the weight of every other tenant.
func (w *world) weigh(ctx context.Context, tenants []*local.Tenant, weight int32) error {
	for i := 0; i < len(tenants); i += 2 {
		before := virtualCluster(tenants[i].VC.Name)
		after := before.DeepCopy()
		after.Spec.Weight = weight
		if err := w.super.Client.Patch(ctx, after, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("set the weight of tenant %s: %w", before.Name, err)
		}
	}
	return nil
}

// serve creates pods in all tenants while no syncer runs, and starts one. It
// returns the ratio of copies between the heavy and the light tenants while
// pods of all tenants waited, and the number of copies then.
func (w *world) serve(ctx context.Context, p place) (share float64, served int, err error) {
	l, err := w.newLoad(ctx, p)
	if err != nil {
		return 0, 0, err
	}
	defer l.close()
	if err := w.stopSyncer(); err != nil {
		return 0, 0, err
	}
	if err := l.pourEach(ctx, w.opts.WeightedPods); err != nil {
		return 0, 0, err
	}
	if err := w.startSyncer(ctx); err != nil {
		return 0, 0, err
	}
	if err := l.await(ctx, "", shown, len(p.targets)*w.opts.WeightedPods); err != nil {
		return 0, 0, err
	}
	var heavy, slight [][]time.Time
	for i := range p.targets {
		if times := l.moments(groupOf(i), copied); i%2 == 0 {
			heavy = append(heavy, times)
		} else {
			slight = append(slight, times)
		}
	}
	share, served = ratioOfService(heavy, slight)
	return share, served, l.remove(ctx)
}

// groupOf returns the group of the pods of a target.
func groupOf(target int) string { return fmt.Sprintf("of%d-", target) }

// pourEach creates a number of pods in each target, with a group for each.
func (l *load) pourEach(ctx context.Context, pods int) error {
	streams, ctx := errgroup.WithContext(ctx)
	for i := range l.targets {
		streams.Go(func() error { return l.pour(ctx, []int{i}, groupOf(i), pods, 1) })
	}
	return streams.Wait()
}

// ratioOfService compares the average number of moments that the members of two
// groups had. It counts from the time at which all members had begun, since
// they do not begin together, until the first was done. The moments of each
// member must be sorted.
func ratioOfService(a, b [][]time.Time) (ratio float64, served int) {
	all := slices.Concat(a, b)
	from, upTo := all[0][0], all[0][len(all[0])-1]
	for _, times := range all {
		if times[0].After(from) {
			from = times[0]
		}
		if last := times[len(times)-1]; last.Before(upTo) {
			upTo = last
		}
	}
	within := func(members [][]time.Time) (n int) {
		for _, times := range members {
			for _, t := range times {
				if !t.Before(from) && !t.After(upTo) {
					n++
				}
			}
		}
		return n
	}
	inA, inB := within(a), within(b)
	return float64(inA) / float64(len(a)) / (float64(max(inB, 1)) / float64(len(b))), inA + inB
}

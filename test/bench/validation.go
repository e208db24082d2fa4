package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// first and others are the groups of the pods of the first tenant and of the
// others.
const first, others = "first", "others"

// validation measures the cost of validators: without any, with a quota, and
// with a validator that is slow for the first tenant.
func (w *world) validation(ctx context.Context) (err error) {
	tenants, err := w.tenants(ctx, w.opts.Tenants)
	if err != nil {
		return err
	}
	if err := w.limit(ctx, tenants); err != nil {
		return err
	}
	s := &report.Scenario{Name: "validation", Size: fmt.Sprintf("%d pods each in %d tenants", w.opts.ValidationPods, len(tenants))}
	s.Notef("one stream of creations a tenant, without a rate limit; slow is a validator that takes %s for each pod of the first tenant", slowTime)
	defer func() { err = errors.Join(err, w.restartSyncer(context.WithoutCancel(ctx))) }()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	const on = "--enable-quota-validation"
	ways := []struct {
		name  string
		start func() error
	}{
		{"off", func() error { return w.startSyncer(ctx) }},
		{"quota", func() error { return w.startSyncer(ctx, on) }},
		{"slow", func() error { return w.startOtherSyncer(ctx, self, slowCommand, on, "--"+slowTenant, tenants[0].Key()) }},
	}
	for run := range w.opts.Runs {
		for _, way := range ways {
			w.progress.sayf("%s: run %d of %d", way.name, run+1, w.opts.Runs)
			if err := errors.Join(w.stopSyncer(), way.start()); err != nil {
				return err
			}
			if err := w.validated(ctx, s, ofTenants(tenants), way.name+": "); err != nil {
				return err
			}
		}
	}
	return w.publish(s)
}

// limit gives tenants a quota that they do not reach.
func (w *world) limit(ctx context.Context, tenants []*local.Tenant) error {
	for _, t := range tenants {
		limited := t.VC.DeepCopy()
		limited.Spec.Quota = &tenancyv1alpha1.QuotaSpec{Hard: tenancyv1alpha1.Limits{"pods": "100k", "count/configmaps": "100k"}}
		if err := w.super.Client.Patch(ctx, limited, client.MergeFrom(t.VC)); err != nil {
			return fmt.Errorf("set a quota for tenant %s: %w", t.Key(), err)
		}
	}
	return nil
}

// validated creates pods in all tenants as fast as possible, and adds the rows
// of the run.
func (w *world) validated(ctx context.Context, s *report.Scenario, p place, before string) error {
	if err := w.awaitSyncer(ctx, func(now sample) bool { return now.Ready >= float64(len(p.targets)) }); err != nil {
		return err
	}
	l, err := w.newLoad(ctx, p)
	if err != nil {
		return err
	}
	defer l.close()
	numbers := all(p.targets)
	loads, loadsCtx := errgroup.WithContext(ctx)
	loads.Go(func() error { return l.burst(loadsCtx, numbers[:1], first, w.opts.ValidationPods, 1) })
	loads.Go(func() error {
		n := len(numbers) - 1
		return l.burst(loadsCtx, numbers[1:], others, n*w.opts.ValidationPods, n)
	})
	if err := loads.Wait(); err != nil {
		return err
	}
	for _, group := range []string{first, others} {
		made, ran := l.moments(group, created), l.moments(group, p.running())
		rate := float64(len(ran)) / ran[len(ran)-1].Sub(made[0]).Seconds()
		s.Add(before+"pods a second, "+group, "", rate, len(ran))
		l.stages(group).report(s, before+group+": ")
	}
	return l.remove(ctx)
}

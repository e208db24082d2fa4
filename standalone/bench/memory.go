package bench

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// usersAtOnce is the number of control planes that get their objects at once.
const usersAtOnce = 4

// measureMemory measures what a control plane adds to a host that has one
// already: while it is idle, and with a workload.
func measureMemory(ctx context.Context, opts *options, dir string, t *table) error {
	host, end, err := startHost(ctx, opts, dir)
	if err != nil {
		return err
	}
	defer end()
	if _, err := host.run(ctx, "first"); err != nil {
		return err
	}
	before, err := host.cost(ctx)
	if err != nil {
		return err
	}
	cpuBefore, err := host.idleCPU(ctx, opts.idle)
	if err != nil {
		return err
	}
	planes, err := host.run(ctx, planeNames(opts.tenants)...)
	if err != nil {
		return err
	}
	idle, err := host.cost(ctx)
	if err != nil {
		return err
	}
	cpuIdle, err := host.idleCPU(ctx, opts.idle)
	if err != nil {
		return err
	}
	if err := useAll(ctx, planes); err != nil {
		return err
	}
	inUse, err := host.cost(ctx)
	if err != nil {
		return err
	}
	each := func(v float64) float64 { return v / float64(opts.tenants) }
	of := fmt.Sprintf("%s tenant, of %d", opts.isolation, opts.tenants)
	t.add("memory of an idle "+of, "MiB", each(idle.mib-before.mib))
	t.add("goroutines of an idle "+of, "", each(idle.goroutines-before.goroutines))
	t.add("CPU of an idle "+of, "% of a core", each(cpuIdle-cpuBefore))
	t.add("memory with a Deployment, a Job, a CRD and a webhook, of a "+of, "MiB", each(inUse.mib-before.mib))
	t.add("goroutines with these, of a "+of, "", each(inUse.goroutines-before.goroutines))
	t.add("memory of a host with one tenant", "MiB", before.mib)
	return nil
}

func planeNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-%d", i)
	}
	return names
}

// useAll creates a workload in each control plane, and waits until the
// controllers have processed it.
func useAll(ctx context.Context, planes []*rest.Config) error {
	hook := newWebhook()
	defer hook.Close()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(usersAtOnce)
	for _, plane := range planes {
		group.Go(func() error { return use(ctx, plane, hook) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("create a workload: %w", err)
	}
	return nil
}

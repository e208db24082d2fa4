package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// kibInMiB is the number of KiB in a MiB.
const kibInMiB = 1024

// measureSleep measures how long a request waits that wakes a control plane, and
// the memory of control planes that sleep.
func measureSleep(ctx context.Context, opts *options, dir string, t *table) error {
	host, end, err := startHost(ctx, opts, dir)
	if err != nil {
		return err
	}
	defer end()
	planes, err := host.run(ctx, "tenant")
	if err != nil {
		return err
	}
	if _, err := newServer(ctx, opts.isolation, planes[0], opts.pods); err != nil {
		return err
	}
	times := make([]time.Duration, 0, opts.wakes)
	for range opts.wakes {
		took, err := wake(ctx, host, "tenant", planes[0])
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	slices.Sort(times)
	for _, p := range []int{50, 99} {
		t.add(fmt.Sprintf("p%d of a wake by a request, %s tenant with %d pods", p, opts.isolation, opts.pods),
			"ms", measure.Milliseconds(measure.Percentile(times, p)))
	}
	before, err := host.cost(ctx)
	if err != nil {
		return err
	}
	names := make([]string, opts.sleepers)
	for i := range names {
		names[i] = fmt.Sprintf("sleeper-%d", i)
	}
	if err := host.sleep(ctx, names...); err != nil {
		return err
	}
	after, err := host.cost(ctx)
	if err != nil {
		return err
	}
	each := func(v float64) float64 { return v / float64(opts.sleepers) }
	t.add(fmt.Sprintf("memory of a tenant that sleeps, of %d", opts.sleepers), "KiB", kibInMiB*each(after.mib-before.mib))
	t.add("goroutines of a tenant that sleeps", "", each(after.goroutines-before.goroutines))
	return nil
}

// wake puts a control plane to sleep, and returns how long a request takes that
// wakes it.
func wake(ctx context.Context, host *hostClient, name string, config *rest.Config) (time.Duration, error) {
	if err := host.sleep(ctx, name); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := withOwnConnection(config, func(client kubernetes.Interface) error {
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, podName(0), metav1.GetOptions{})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("wake a control plane: %w", err)
	}
	return time.Since(begin), nil
}

package bench

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/discovery"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// controlPlaneMiB is the memory of a tenant's control plane in vc-standalone,
// podKiB that of a pod with its copy and garbage, spareMiB that of everything
// else.
const controlPlaneMiB, podKiB, spareMiB = 165, 600, 1024

// memoryLimit is the environment variable that limits the heap of the control
// planes, garbage included.
const memoryLimit = "GOMEMLIMIT"

// checkMemory fails if the tenants and pods of a selected scenario do not fit
// into this machine's memory. It checks neither an existing super cluster nor
// one with a memory limit.
func (o *Options) checkMemory() error {
	if o.Kubeconfig != "" || os.Getenv(memoryLimit) != "" {
		return nil
	}
	_, available, err := measure.Memory()
	if err != nil {
		return err
	}
	for _, s := range o.chosen() {
		if err := s.most(&o.Sizes).fits(available / measure.MiB); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// fits fails if the demand exceeds the available memory.
func (d demand) fits(availableMiB int) error {
	if needed := d.tenants*controlPlaneMiB + d.pods*podKiB/1024 + spareMiB; needed > availableMiB {
		return fmt.Errorf("%d tenants' control planes and %d pods need about %d MiB, and this machine has %d MiB left: choose fewer (see --help), "+
			"or set %sto a limit such as 19GiB, at which garbage is collected sooner", d.tenants, d.pods, needed, availableMiB, memoryLimit)
	}
	return nil
}

// collectGarbage collects the garbage of the control planes before a run, as
// package testing does. All of them share one heap: a collection keeps a core
// busy for a second, and would hit runs at random.
func (w *world) collectGarbage(ctx context.Context) error {
	if !w.started {
		return nil
	}
	d, err := discovery.NewDiscoveryClientForConfig(w.super.Config)
	if err != nil {
		return err
	}
	if _, err := d.RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
		return fmt.Errorf("collect the garbage of the control planes: %w", err)
	}
	return nil
}

package bench

import (
	"context"
	"fmt"

	"k8s.io/client-go/discovery"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// controlPlaneMiB is the memory of a tenant's control plane in vc-standalone, spareMiB what all else needs.
const controlPlaneMiB, spareMiB = 165, 1024

// checkMemory says whether the tenants of all chosen scenarios fit into the memory of this machine, if they are to run on it.
func (o *Options) checkMemory() error {
	if o.Kubeconfig != "" {
		return nil
	}
	_, available, err := measure.Memory()
	if err != nil {
		return err
	}
	for _, s := range o.chosen() {
		if err := fits(s.controlPlanes(&o.Sizes), available/measure.MiB); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// fits says whether so many control planes fit into memory.
func fits(count, availableMiB int) error {
	if needed := count*controlPlaneMiB + spareMiB; needed > availableMiB {
		return fmt.Errorf("%d tenants' control planes need about %d MiB, and this machine has %d MiB left: choose fewer tenants (see --help)",
			count, needed, availableMiB)
	}
	return nil
}

// collectGarbage has the process of the control planes begin without garbage, as package testing does before each run. All of them are one heap
// there: a collection takes a core for a second, and whether one comes in the middle is chance.
func (w *world) collectGarbage(ctx context.Context) error {
	if !w.started {
		return nil
	}
	d, err := discovery.NewDiscoveryClientForConfig(w.super.Config)
	if err != nil {
		return err
	}
	if _, err := d.RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
		return fmt.Errorf("collecting the garbage of the control planes: %w", err)
	}
	return nil
}

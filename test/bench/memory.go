package bench

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/discovery"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// controlPlaneMiB is the memory of a tenant's control plane in vc-standalone, podKiB that of a pod with its copy, and garbage, spareMiB
// what all else needs.
const controlPlaneMiB, podKiB, spareMiB = 165, 600, 1024

// memoryLimit is the variable that bounds the garbage of the control planes, and with it what they need.
const memoryLimit = "GOMEMLIMIT"

// checkMemory says whether the tenants and pods of all chosen scenarios fit into the memory of this machine, if they are to run on it and
// nobody bounded what they take.
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

// fits says whether it fits into memory.
func (d demand) fits(availableMiB int) error {
	if needed := d.tenants*controlPlaneMiB + d.pods*podKiB/1024 + spareMiB; needed > availableMiB {
		return fmt.Errorf("%d tenants' control planes and %d pods need about %d MiB, and this machine has %d MiB left: choose fewer (see --help), "+
			"or set %s, such as to 19GiB, by which garbage is collected sooner", d.tenants, d.pods, needed, availableMiB, memoryLimit)
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

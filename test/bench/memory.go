package bench

import (
	"fmt"

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

// collectLate is the environment of a process that holds control planes. All of them are one heap there, and each collection of its garbage
// would take a core from what is measured, for a second; an apiserver in a process of its own has little to collect.
func collectLate() ([]string, error) {
	_, available, err := measure.Memory()
	if err != nil {
		return nil, err
	}
	return []string{"GOGC=400", fmt.Sprintf("GOMEMLIMIT=%d", available*3/4)}, nil
}

// fits says whether so many control planes fit into memory.
func fits(count, availableMiB int) error {
	if needed := count*controlPlaneMiB + spareMiB; needed > availableMiB {
		return fmt.Errorf("%d tenants' control planes need about %d MiB, and this machine has %d MiB left: choose fewer tenants (see --help)",
			count, needed, availableMiB)
	}
	return nil
}

package component

import (
	"fmt"
	"os"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// LimitMemory has the garbage collector keep the process within the memory that
// it may have: nine tenths of its cgroup's limit, or of the machine's memory
// without one. GOMEMLIMIT and AUTOMEMLIMIT in the environment take precedence.
// A process whose limit cannot be read runs without one.
func LimitMemory() {
	if _, err := memlimit.Set(memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem))); err != nil {
		fmt.Fprintf(os.Stderr, "limit memory: %v\n", err)
	}
}

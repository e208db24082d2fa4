package component

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryInterval is the interval at which the memory limit is read again: the
// limit of a running container can be changed.
const memoryInterval = 15 * time.Second

// LimitMemory has the garbage collector keep the process within the memory that
// it may have: nine tenths of its cgroup's limit, or of the machine's memory
// without one. It follows changes of the limit until ctx ends. GOMEMLIMIT and
// AUTOMEMLIMIT in the environment take precedence. A process whose limit cannot
// be read runs without one.
func LimitMemory(ctx context.Context) {
	limitMemory(ctx, memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem), memoryInterval)
}

func limitMemory(ctx context.Context, read memlimit.Provider, interval time.Duration) {
	if _, err := memlimit.Set(memlimit.WithProvider(read), memlimit.WithRefreshInterval(ctx, interval)); err != nil {
		fmt.Fprintf(os.Stderr, "limit memory: %v\n", err)
	}
}

package component

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, test := range map[string]struct {
		environment string
		limited     bool
	}{
		"by cgroup or machine": {"", true},
		"by the environment":   {"off", false},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(math.MaxInt64)
			if test.environment != "" {
				t.Setenv("GOMEMLIMIT", test.environment) // read by the runtime at start, which gave us before
			}
			LimitMemory()
			if limited := debug.SetMemoryLimit(-1) < math.MaxInt64; limited != test.limited {
				t.Errorf("limited: %t, want %t", limited, test.limited)
			}
		})
	}
}

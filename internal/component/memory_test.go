package component

import (
	"errors"
	"math"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
			LimitMemory(t.Context())
			if limited := debug.SetMemoryLimit(-1) < math.MaxInt64; limited != test.limited {
				t.Errorf("limited: %t, want %t", limited, test.limited)
			}
		})
	}
}

// TestAChangedLimit applies to a running process. A limit that cannot be read
// for a while stays as it is.
func TestAChangedLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	synctest.Test(t, func(t *testing.T) {
		const gibi = 1 << 30
		var mu sync.Mutex
		limit, failure := uint64(10*gibi), error(nil)
		read := func() (uint64, error) {
			mu.Lock()
			defer mu.Unlock()
			return limit, failure
		}
		limitMemory(t.Context(), read, time.Second)
		for _, step := range []struct {
			limit   uint64
			failure error
			want    int64
		}{
			{10 * gibi, nil, 9 * gibi},
			{20 * gibi, nil, 18 * gibi},
			{30 * gibi, errors.New("no such file"), 18 * gibi},
			{5 * gibi, nil, gibi * 9 / 2},
		} {
			mu.Lock()
			limit, failure = step.limit, step.failure
			mu.Unlock()
			time.Sleep(time.Second)
			synctest.Wait()
			if got := debug.SetMemoryLimit(-1); got != step.want {
				t.Errorf("a limit of %d, error %v: got %d, want %d", step.limit, step.failure, got, step.want)
			}
		}
	})
}

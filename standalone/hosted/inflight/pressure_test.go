package inflight

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

func TestPressure(t *testing.T) {
	for name, test := range map[string]struct {
		memory    Memory
		was, want bool
	}{
		"no limit":           {Memory{Used: 1 << 40, Limit: math.MaxInt64}, true, false},
		"a limit of nothing": {Memory{Used: 1}, true, false},
		"below":              {Memory{Used: 899, Limit: 1000}, false, false},
		"at it":              {Memory{Used: 900, Limit: 1000}, false, true},
		"still":              {Memory{Used: 750, Limit: 1000}, true, true},
		"no longer":          {Memory{Used: 749, Limit: 1000}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.memory.isPressed(test.was); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// TestLiveMemoryCounts, and garbage does not.
func TestLiveMemoryCounts(t *testing.T) {
	const mebi = 1 << 20
	debug.FreeOSMemory()
	before := ReadMemory()
	kept := make([]byte, 64*mebi)
	debug.FreeOSMemory()
	grown := ReadMemory().Used - before.Used
	if grown < 56*mebi || grown > 80*mebi {
		t.Errorf("64 MiB count as %d", grown)
	}
	runtime.KeepAlive(kept)
	debug.FreeOSMemory()
	if left := ReadMemory().Used - before.Used; left > 16*mebi {
		t.Errorf("after their end they count as %d", left)
	}
	if before.Limit != debug.SetMemoryLimit(-1) {
		t.Errorf("the limit is %d", before.Limit)
	}
}

// logs collects what is logged.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) add(_, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, args)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// TestTheLargestConsumerIsRejectedFirst, then the next one, until the pressure
// ends.
func TestTheLargestConsumerIsRejectedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := newHost(math.MaxInt64)
		add := func(name string, held int64, protected bool) *Tenant {
			tenant := host.Add(name, Config{Protected: protected})
			take(t, tenant, demand{kind: Write, cost: held})
			return tenant
		}
		super := add("super", 200<<20, true)
		first, second := add("first", 100<<20, false), add("second", 50<<20, false)
		small := add("small", smallRequest, false)
		var used atomic.Int64
		used.Store(95)
		logged := &logs{}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			host.Watch(ctx, func() Memory { return Memory{Used: used.Load(), Limit: 100} }, funcr.New(logged.add, funcr.Options{}))
		}()
		shed := func() string {
			var names []string
			for _, tenant := range []*Tenant{super, first, second, small} {
				if tenant.Usage().Shed {
					names = append(names, tenant.name)
				}
			}
			return strings.Join(names, ", ")
		}
		for i, want := range []string{
			"", "first", "first, second", "first, second",
		} {
			if got := shed(); got != want {
				t.Errorf("after %d checks: got %s, want %s", i, got, want)
			}
			time.Sleep(pressureInterval)
			synctest.Wait()
		}
		reject(t, first, demand{}, ReasonPressure, patience)
		take(t, small, demand{})
		used.Store(50)
		take(t, second, demand{}) // waits for the end of the pressure
		if got := shed(); got != "" {
			t.Errorf("after the pressure: %s", got)
		}
		stop()
		<-done
		for _, want := range []string{`"controlPlane"="first" "requestBytes"=104857600 "usedBytes"=95 "limitBytes"=100`, `"controlPlane"="second"`, "no longer short"} {
			if !strings.Contains(logged.String(), want) {
				t.Errorf("the log does not contain %s:\n%s", want, logged)
			}
		}
		if strings.Count(logged.String(), "\n") != 2 {
			t.Errorf("the log repeats itself:\n%s", logged)
		}
	})
}

// TestAChangedMemoryLimit: a large request that waits for memory starts when the
// process gets more, and others wait when it gets less.
func TestAChangedMemoryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := newHost(leastHostBudget)
		var limit atomic.Int64
		limit.Store(leastHostBudget)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			host.Watch(ctx, func() Memory { return Memory{Limit: limit.Load()} }, funcr.New(func(string, string) {}, funcr.Options{}))
		}()
		taken := make([]*grant, 0, leastHostBudget/largeBudget)
		for i := range leastHostBudget / largeBudget {
			taken = append(taken, take(t, host.Add(string(rune('a'+i)), Config{}), demand{kind: Write, cost: largeBudget}))
		}
		late := host.Add("late", Config{})
		reject(t, late, demand{kind: Write, cost: largeBudget}, ReasonHost, patience)
		time.AfterFunc(time.Second, func() { limit.Store(8 * leastHostBudget) })
		begin := time.Now()
		taken = append(taken, take(t, late, demand{kind: Write, cost: largeBudget}))
		if waited := time.Since(begin); waited > time.Second+pressureInterval {
			t.Errorf("it waited %s for a changed limit", waited)
		}
		limit.Store(leastHostBudget)
		time.Sleep(pressureInterval)
		synctest.Wait()
		taken[0].release()
		reject(t, host.Add("later", Config{}), demand{kind: Write, cost: largeBudget}, ReasonHost, patience)
		stop()
		<-done
	})
}

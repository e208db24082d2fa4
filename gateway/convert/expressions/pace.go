package expressions

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/virtualcluster/virtualcluster/gateway/convert/pace"
	"github.com/virtualcluster/virtualcluster/internal/expression"
)

const (
	// Burst is how much work it may be at once to compile the expressions of one
	// tenant, as [expression.Work] counts it: that of eight objects as large as possible,
	// or about ten seconds of a core.
	Burst = 8 * expression.MaxWork
	// PerSecond is how much work it may be on average: about a twentieth of a core.
	PerSecond = 48 << 10
)

// Pace bounds how much the gateway compiles for tenants: a compilation cannot be
// stopped, and takes seconds for some expressions. A tenant has one at a time, and
// all of them leave half of the cores to other requests.
type Pace struct {
	work  *pace.Tenants
	slots chan struct{}

	mu sync.Mutex
	// turns are those of tenants that compile or wait, by cluster key.
	turns map[string]*turn
}

// turn is what one compilation of a tenant at a time has.
type turn struct {
	taken    chan struct{}
	requests int
}

// NewPace returns a Pace for the cores of this process.
func NewPace() *Pace {
	return &Pace{
		work: pace.NewTenants(Burst, PerSecond), slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), turns: map[string]*turn{},
	}
}

// Do compiles for a tenant when it is its turn; compile returns how much work it
// was. If the tenant has done too much, Do compiles nothing, and returns for how long
// the tenant has to wait. The error is that of the context.
func (p *Pace) Do(ctx context.Context, clusterKey string, compile func() (work int)) (wait time.Duration, err error) {
	own := p.join(clusterKey)
	defer p.leave(clusterKey)
	for _, place := range []chan struct{}{own.taken, p.slots} {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	if wait := p.work.Wait(clusterKey); wait > 0 {
		return wait, nil
	}
	p.work.Take(clusterKey, compile())
	return 0, nil
}

// join returns the turn of a tenant for one request more.
func (p *Pace) join(clusterKey string) *turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.turns[clusterKey]
	if own == nil {
		own = &turn{taken: make(chan struct{}, 1)}
		p.turns[clusterKey] = own
	}
	own.requests++
	return own
}

func (p *Pace) leave(clusterKey string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.turns[clusterKey]
	if own.requests--; own.requests == 0 {
		delete(p.turns, clusterKey)
	}
}

package tenants

import (
	"context"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

const (
	// patience is how long a query of an unknown pod waits until the super
	// cluster tells whose it is: less than the five seconds after which clients
	// ask again.
	patience = 4 * time.Second
	// look is the interval at which it looks.
	look = 50 * time.Millisecond
)

// Limits is what one tenant may take of the process.
type Limits struct {
	// Rate is the number of queries a second, and Burst how many may come at
	// once.
	Rate, Burst int
	// Concurrent is the number of queries that are being answered. Those that
	// wait for a resolver outside take most of them.
	Concurrent int
	// Waiting is the number of queries of pods that are not known yet.
	Waiting int
	// Connections is the number of TCP connections.
	Connections int
}

// DefaultLimits are enough for a tenant with thousands of pods.
func DefaultLimits() Limits {
	return Limits{Rate: 2000, Burst: 2000, Concurrent: 128, Waiting: 32, Connections: 64}
}

// admission decides which queries that arrive at a tenant's port are answered.
type admission struct {
	key       string
	directory *Directory
	metrics   *metrics
	pace      *rate.Limiter
	// concurrent, waiting and connections are semaphores.
	concurrent, waiting, connections chan struct{}
}

func newAdmission(key string, directory *Directory, metrics *metrics, limits Limits) *admission {
	return &admission{
		key: key, directory: directory, metrics: metrics,
		pace:        rate.NewLimiter(rate.Limit(limits.Rate), limits.Burst),
		concurrent:  make(chan struct{}, limits.Concurrent),
		waiting:     make(chan struct{}, limits.Waiting),
		connections: make(chan struct{}, limits.Connections),
	}
}

// holder returns who has an address.
func (a *admission) holder(address netip.Addr) Holder { return a.directory.Holder(address, a.key) }

// isForeign reports whether the holder of an address is another tenant, and
// counts what the address sent.
func (a *admission) isForeign(holder Holder) bool {
	if holder == Foreign {
		a.metrics.drop(foreign)
	}
	return holder == Foreign
}

// await waits until the holder of an address is known, and reports whether it is
// the tenant.
func (a *admission) await(ctx context.Context, address netip.Addr, holder Holder) bool {
	if holder == Unknown && acquire(a.waiting) {
		holder = a.identify(ctx, address)
		<-a.waiting
	}
	if holder != Own {
		a.metrics.drop(unknown)
	}
	return holder == Own
}

// identify looks who has an address until it is known.
func (a *admission) identify(ctx context.Context, address netip.Addr) Holder {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for {
		if holder := a.holder(address); holder != Unknown {
			return holder
		}
		select {
		case <-ctx.Done():
			return Unknown
		case <-ticks.C:
		}
	}
}

// acquire takes a place of a semaphore, and reports whether one was free.
func acquire(semaphore chan struct{}) bool {
	select {
	case semaphore <- struct{}{}:
		return true
	default:
		return false
	}
}

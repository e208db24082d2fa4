package tenants

import (
	"context"
	"net"
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

// holder returns who has the address of a client.
func (a *admission) holder(client net.Addr) Holder {
	at, err := netip.ParseAddrPort(client.String())
	if err != nil {
		return Unknown
	}
	return a.directory.Holder(at.Addr().Unmap().WithZone(""), a.key)
}

// isForeign reports whether a client is another tenant's, and counts it. It is
// cheap: what others send to a tenant's port is dropped before it is parsed, and
// not charged to the tenant.
func (a *admission) isForeign(client net.Addr) bool {
	if a.holder(client) != Foreign {
		return false
	}
	a.metrics.drop(foreign)
	return true
}

// await waits until a client is known, and reports whether it is the tenant's.
func (a *admission) await(ctx context.Context, client net.Addr) bool {
	holder := a.holder(client)
	if holder == Unknown && acquire(a.waiting) {
		holder = a.identify(ctx, client)
		<-a.waiting
	}
	if holder != Own {
		a.metrics.drop(unknown)
	}
	return holder == Own
}

// identify looks who has the address of a client until it is known.
func (a *admission) identify(ctx context.Context, client net.Addr) Holder {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for {
		if holder := a.holder(client); holder != Unknown {
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

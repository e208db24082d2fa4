package inflight

import (
	"cmp"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
)

const (
	// tenantBudget is the estimated memory of all requests that a tenant has in
	// flight. Large ones may take largeBudget of it, so that small ones do not
	// wait for a list.
	tenantBudget = 256 << 20
	largeBudget  = tenantBudget - tenantBudget/8
	// unreadBudget is the part of it for what the clients of watches have not read.
	unreadBudget = tenantBudget / 2
	// leastHostBudget is the minimum of the memory of the large requests of all
	// tenants. It is more if the process has a higher memory limit.
	leastHostBudget   = 1 << 30
	hostBudgetPercent = 25
	percent           = 100
	// smallRequest is the cost up to which a request is not large. It does not
	// count for the host, so that requests of other tenants do not delay it.
	smallRequest = 4 << 20
)

// Host has the requests in flight of all tenants of a process.
type Host struct {
	// largeAtATime is the number of large reads that a tenant has in flight, so
	// that their encoding leaves processors to the others.
	largeAtATime int

	mu sync.Mutex // guards all below, and all of the tenants
	// held is the memory of the large requests of all tenants, and capacity its
	// limit.
	held, capacity int64
	tenants        map[*Tenant]struct{}
	// rejected counts the rejected requests, also of tenants that are gone.
	rejected map[Reason]int64
	// waiting has the tenants with queued requests.
	waiting map[*Tenant]struct{}
}

// NewHost returns the budget of a process.
func NewHost() *Host { return newHost(hostBudget(debug.SetMemoryLimit(-1))) } // a negative limit only reads it

func newHost(capacity int64) *Host {
	return &Host{
		capacity: capacity, largeAtATime: max(1, runtime.GOMAXPROCS(0)/2), //nolint:mnd // a half
		tenants: map[*Tenant]struct{}{}, waiting: map[*Tenant]struct{}{}, rejected: map[Reason]int64{},
	}
}

// hostBudget returns the memory of the large requests of all tenants of a
// process with a memory limit.
func hostBudget(limit int64) int64 {
	if limit == math.MaxInt64 {
		return leastHostBudget
	}
	return max(leastHostBudget, limit/percent*hostBudgetPercent)
}

// resize follows the memory limit of the process. Requests in flight continue.
func (h *Host) resize(limit int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.capacity = hostBudget(limit)
	h.lockedWake(nil, true)
}

// Add adds a tenant. Its owner removes it with Remove.
func (h *Host) Add(name string, config Config) *Tenant {
	t := &Tenant{
		host: h, name: name, config: config, limits: config.Limits, rejected: map[Reason]int64{}, reading: make(chan struct{}, readers),
	}
	t.platform = &Tenant{host: h, name: name, config: Config{Stored: config.Stored}, reading: make(chan struct{}, readers)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tenants[t] = struct{}{}
	return t
}

// Remove removes a tenant. Its requests in flight end as usual.
func (h *Host) Remove(t *Tenant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tenants, t)
}

// lockedBlocked returns the limit that keeps a request from starting now; empty
// if none does.
func (h *Host) lockedBlocked(t *Tenant, d demand) Reason {
	limit := t.limits.Of(d.kind)
	switch {
	case t.isPlatform():
		return ""
	case t.shed:
		return ReasonPressure
	case limit > 0 && t.running[d.kind] >= limit:
		return reasonOf(d.kind)
	case d.head > 0 && t.heads+d.head > headBudget:
		return ReasonHeads
	case t.held+d.own() > tenantBudget:
		return ReasonMemory
	case !d.isLarge():
		return ""
	case t.large+d.own() > largeBudget, d.kind == Read && t.largeReads >= h.largeAtATime:
		return ReasonMemory
	case h.held+d.shared(h.capacity) > h.capacity:
		return ReasonHost
	default:
		return ""
	}
}

// lockedWake starts queued requests that no limit blocks any more: of one
// tenant, or of all tenants if the memory of the host was released. The tenant
// whose large requests take the least is first.
func (h *Host) lockedWake(t *Tenant, all bool) {
	if !all {
		_ = t.lockedStart(false)
		return
	}
	tenants := make([]*Tenant, 0, len(h.waiting))
	for t := range h.waiting {
		tenants = append(tenants, t)
	}
	slices.SortFunc(tenants, func(a, b *Tenant) int {
		return cmp.Or(cmp.Compare(a.large, b.large), cmp.Compare(a.name, b.name))
	})
	// The first request that does not fit into the host's memory is the next
	// that gets some, or smaller ones would be preferred forever.
	hostIsFull := false
	for _, t := range tenants {
		hostIsFull = t.lockedStart(hostIsFull) || hostIsFull
	}
}

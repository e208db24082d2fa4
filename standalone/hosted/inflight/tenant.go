package inflight

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

const (
	// patience is how long a request waits for others to finish.
	patience = 10 * time.Second
	// longestQueue is the number of requests of one kind that wait; each takes
	// a goroutine and a stream.
	longestQueue = 200
)

// Config configures a tenant.
type Config struct {
	// Limits are the limits at first.
	Limits Limits
	// Stored returns what the tenant stores; nil for nothing.
	Stored func() Stored
	// Protected exempts the tenant from being rejected under memory pressure:
	// the super cluster.
	Protected bool
}

// Stored is what a tenant stores.
type Stored struct {
	// Bytes is the size of all records, Largest that of the largest.
	Bytes, Largest int64
}

// Tenant has the requests in flight of one tenant.
type Tenant struct {
	host   *Host
	name   string
	config Config
	// platform has the requests of the platform to the tenant; nil for itself.
	// Nothing blocks them: they must not wait for what the tenant has in flight.
	platform *Tenant
	// reading has the watches that read a page.
	reading chan struct{}

	// Guarded by the host's mutex.

	limits  Limits
	running [kinds]int
	// held is the memory of all requests, large that of the large ones, heads that of
	// their heads, and unread what the clients of watches have not read.
	held, large, heads, unread int64
	largeReads                 int
	queues                     [kinds]queue
	rejected                   map[Reason]int64
	// shed reports whether requests are rejected under memory pressure.
	shed bool
}

// queue has the waiting requests of a kind. Small ones do not wait for large
// ones.
type queue struct{ small, large []*waiter }

func (q *queue) len() int { return len(q.small) + len(q.large) }

func (q *queue) of(d demand) *[]*waiter {
	if d.isLarge() {
		return &q.large
	}
	return &q.small
}

// waiter is a request that waits.
type waiter struct {
	demand demand
	// started is closed when the request may start; grant is set before.
	started chan struct{}
	grant   *grant
}

// demand is what a request needs.
type demand struct {
	kind Kind
	// cost is the memory, and head the part that it needs until its end.
	cost, head int64
}

func (d demand) isLarge() bool { return d.cost > smallRequest }

// own returns what counts for the tenant. A request that exceeds the budget
// gets all of it.
func (d demand) own() int64 {
	if d.isLarge() {
		return min(d.cost, largeBudget)
	}
	return d.cost
}

// shared returns what counts for the host.
func (d demand) shared(capacity int64) int64 {
	if d.isLarge() {
		return min(d.cost, capacity)
	}
	return 0
}

// SetLimits changes the limits. Requests in flight continue.
func (t *Tenant) SetLimits(limits Limits) {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	t.limits = limits
	t.host.lockedWake(t, false)
}

// isPlatform reports whether these are the requests of the platform.
func (t *Tenant) isPlatform() bool { return t.platform == nil }

// Usage is what a tenant has in flight.
type Usage struct {
	Limits Limits
	// Running and Waiting are numbers of requests by kind.
	Running, Waiting [kinds]int
	// Bytes is the estimated memory of all requests.
	Bytes int64
	// Rejected counts rejected requests.
	Rejected map[Reason]int64
	// Shed reports whether requests are rejected under memory pressure.
	Shed bool
}

// Usage returns what the tenant has in flight.
func (t *Tenant) Usage() Usage {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	usage := Usage{
		Limits: t.limits, Running: t.running, Bytes: t.held,
		Rejected: maps.Clone(t.rejected), Shed: t.shed,
	}
	for kind := range usage.Waiting {
		usage.Waiting[kind] = t.queues[kind].len()
	}
	return usage
}

// rejection is the reason why a request may not start.
type rejection Reason

func (r rejection) Error() string { return "rejected by the limit of " + string(r) }

// acquire waits until a request may start. The caller releases the grant.
func (t *Tenant) acquire(ctx context.Context, d demand) (*grant, error) {
	g, w, err := t.startOrWait(d)
	if w == nil {
		return g, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-w.started:
		return w.grant, nil
	case <-ctx.Done():
		return t.giveUp(ctx, w)
	}
}

// startOrWait starts a request, rejects it, or puts it into the queue.
func (t *Tenant) startOrWait(d demand) (*grant, *waiter, error) {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	blocked := t.host.lockedBlocked(t, d)
	line := t.queues[d.kind].of(d)
	if blocked == "" && len(*line) == 0 {
		return t.lockedGrant(d), nil, nil
	}
	// Watches last, so waiting for the end of one makes no sense. A head that counts
	// would not while its request waits.
	if blocked == ReasonWatches || d.head > 0 || t.queues[d.kind].len() >= longestQueue {
		return nil, nil, t.lockedReject(blocked, d)
	}
	w := &waiter{demand: d, started: make(chan struct{})}
	*line = append(*line, w)
	t.host.waiting[t] = struct{}{}
	return nil, w, nil
}

// lockedReject counts a rejection. A request that no limit blocks by itself
// waits behind others of its kind.
func (t *Tenant) lockedReject(blocked Reason, d demand) error {
	if blocked == "" {
		blocked = reasonOf(d.kind)
	}
	t.rejected[blocked]++
	t.host.rejected[blocked]++
	return rejection(blocked)
}

// giveUp takes a request out of the queue, unless it was started meanwhile.
func (t *Tenant) giveUp(ctx context.Context, w *waiter) (*grant, error) {
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	if w.grant != nil {
		return w.grant, nil
	}
	line := t.queues[w.demand.kind].of(w.demand)
	*line = slices.DeleteFunc(*line, func(other *waiter) bool { return other == w })
	blocked := t.host.lockedBlocked(t, w.demand)
	t.host.lockedWake(t, w.demand.isLarge()) // it may have been in the way of others
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err() // the client does not wait any more
	}
	return nil, t.lockedReject(blocked, w.demand)
}

// lockedStart starts the queued requests that no limit blocks. If the host has
// no memory for large requests, those wait. It reports whether that blocked one.
func (t *Tenant) lockedStart(hostIsFull bool) (blockedByHost bool) {
	queued := 0
	for kind := range t.queues {
		q := &t.queues[kind]
		t.lockedStartLine(&q.small)
		if !hostIsFull && !blockedByHost {
			blockedByHost = t.lockedStartLine(&q.large) == ReasonHost
		}
		queued += q.len()
	}
	if queued == 0 {
		delete(t.host.waiting, t)
	}
	return blockedByHost
}

// lockedStartLine starts requests in order until one is blocked, and returns
// why it is.
func (t *Tenant) lockedStartLine(line *[]*waiter) Reason {
	for len(*line) > 0 {
		first := (*line)[0]
		if blocked := t.host.lockedBlocked(t, first.demand); blocked != "" {
			return blocked
		}
		first.grant = t.lockedGrant(first.demand)
		close(first.started)
		*line = slices.Delete(*line, 0, 1)
	}
	return ""
}

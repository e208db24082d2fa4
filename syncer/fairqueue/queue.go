package fairqueue

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// Defaults of [Options].
const (
	DefaultCap         = 4
	DefaultBackoffBase = 5 * time.Millisecond
	DefaultBackoffMax  = time.Minute
)

// Options configure a queue. The zero value selects the defaults.
type Options struct {
	// Cap is the maximum number of keys of one tenant in flight.
	Cap int
	// Workers is the maximum number of keys of fast tenants in flight, 0 for no
	// limit.
	Workers int
	// SlowWorkers is the maximum number of keys of slow tenants in flight, 0
	// for no limit. While more than half of it is used, each slow tenant gets
	// at most one worker.
	SlowWorkers int
	// BackoffBase is the delay after a key's first failure. It doubles with
	// each further failure.
	BackoffBase time.Duration
	// BackoffMax is the maximum delay after a failure.
	BackoffMax time.Duration
	// Observe, if set, is called for every key that a worker gets. It is called
	// concurrently and without a lock.
	Observe func(Wait)
}

// Wait describes how long a key was due before a worker got it.
type Wait struct {
	Tenant   string
	Weight   int32
	Priority int
	Lasted   time.Duration
}

func (o Options) withDefaults() Options {
	if o.Cap <= 0 {
		o.Cap = DefaultCap
	}
	if o.BackoffBase <= 0 {
		o.BackoffBase = DefaultBackoffBase
	}
	if o.BackoffMax <= 0 {
		o.BackoffMax = DefaultBackoffMax
	}
	return o
}

// Queue hands out keys, fairly among tenants. Create it with [New].
//
// Like the queues of client-go it contains a key at most once, never hands it
// to two workers, and keeps a key that is added while in flight until
// [Queue.Done].
type Queue[T comparable] struct {
	opts     Options
	tenantOf func(T) string

	// mu guards the fields below. Methods named locked… require it to be held.
	mu sync.Mutex
	// work is signalled once for each item that can be handed out.
	work sync.Cond
	// drained is broadcast while draining, whenever the drain may be complete.
	drained sync.Cond
	phase   phase

	// items holds the record of each key.
	items map[T]*item[T]
	// lanes holds the lane of each tenant that has an item or owes.
	lanes map[string]*lane[T]
	// configs holds the tenants' settings that differ from the default.
	configs map[string]config
	// fast and slow are the classes of lanes.
	fast, slow class[T]
	// seated counts how often a lane got a seat.
	seated uint64
	// ready and inFlight are the sums over all lanes.
	ready, inFlight int

	// delays are the items that are not due, the first on top. timer fires at
	// armed, when the first is due; zero if it is not set.
	delays order[*item[T]]
	timer  *time.Timer
	armed  time.Time

	spareItems pool[item[T]]
	spareLanes pool[lane[T]]
}

var _ priorityqueue.PriorityQueue[string] = (*Queue[string])(nil)

// New returns a queue. tenantOf returns the tenant of a key; it must always
// return the same tenant for the same key, and is called with the queue's lock
// held.
func New[T comparable](tenantOf func(T) string, o Options) *Queue[T] {
	q := &Queue[T]{
		opts:     o.withDefaults(),
		tenantOf: tenantOf,
		items:    map[T]*item[T]{},
		lanes:    map[string]*lane[T]{},
		configs:  map[string]config{},
	}
	q.work.L, q.drained.L = &q.mu, &q.mu
	q.fast.limit, q.slow.limit, q.slow.shared = o.Workers, o.SlowWorkers, (o.SlowWorkers+1)/2
	return q
}

// Len returns the number of keys that are due and wait for a worker, including
// those of paused tenants.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready
}

// lockedItem returns the record of a key, and creates it if there is none.
func (q *Queue[T]) lockedItem(key T) *item[T] {
	if it := q.items[key]; it != nil {
		return it
	}
	it := q.spareItems.get()
	it.key, it.lane = key, q.lockedLane(q.tenantOf(key))
	it.sibling.value, it.place.value = it, it
	it.lane.items.pushBack(&it.sibling)
	q.items[key] = it
	return it
}

// lockedRelease releases the record of an item that has no state. The caller
// settles the lane.
func (q *Queue[T]) lockedRelease(it *item[T]) {
	if it.inFlight || it.state != idle || it.failures > 0 {
		return
	}
	delete(q.items, it.key)
	it.lane.items.remove(&it.sibling)
	q.spareItems.put(it)
}

func (q *Queue[T]) lockedLane(tenant string) *lane[T] {
	if l := q.lanes[tenant]; l != nil {
		q.lockedReturn(l)
		return l
	}
	l := q.spareLanes.get()
	l.tenant, l.config = tenant, q.lockedConfig(tenant)
	l.class = q.lockedClass(l.config)
	q.lanes[tenant] = l
	return l
}

// lockedSettle must follow every change of a lane: it wakes one worker for each
// item that has become available, updates the lane's seat, and releases an
// empty lane.
func (q *Queue[T]) lockedSettle(l *lane[T]) {
	open := l.open(q.opts.Cap)
	for ; l.offered < open; l.offered++ {
		q.work.Signal()
	}
	l.offered = open
	q.lockedSeat(l, open > 0)
	if q.phase == draining {
		q.drained.Broadcast()
	}
	if l.items.empty() {
		q.lockedLeave(l)
	}
}

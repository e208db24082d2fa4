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

// Options are the limits of one queue; the zero value means the defaults.
type Options struct {
	// Cap is how many keys of one tenant may be in flight.
	Cap int
	// Workers is how many keys of fast tenants may be in flight, 0 for any
	// number: as many as workers get.
	Workers int
	// SlowWorkers is how many keys of slow tenants may be in flight, 0 for any
	// number. While more than half of them are, each slow tenant gets one.
	SlowWorkers int
	// BackoffBase is the delay after a key's first failure. It doubles with
	// each further one.
	BackoffBase time.Duration
	// BackoffMax is the longest such delay.
	BackoffMax time.Duration
	// Observe, if set, is told of every key that a worker gets. It is called
	// without a lock, by many workers.
	Observe func(Wait)
}

// Wait is how long a key has been due when a worker gets it, and whose it is.
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

// Queue hands out keys, fairly among tenants. Make one with [New].
//
// Like the queues of client-go it holds a key at most once, never gives it to
// two workers, and keeps what is added while a worker has it until [Queue.Done].
type Queue[T comparable] struct {
	opts     Options
	tenantOf func(T) string

	// mu guards everything below. Methods named locked… need it held.
	mu sync.Mutex
	// work is signalled once for each item that can be handed out.
	work sync.Cond
	// drained is broadcast while draining, whenever something may have ended.
	drained sync.Cond
	phase   phase

	// items holds the record of each key.
	items map[T]*item[T]
	// lanes holds the lane of each tenant that has an item or owes.
	lanes map[string]*lane[T]
	// configs holds what differs from the default, by tenant.
	configs map[string]config
	// fast and slow are the classes of lanes.
	fast, slow class[T]
	// seated counts how often a lane took a seat.
	seated uint64
	// ready and inFlight are the sums over all lanes.
	ready, inFlight int

	// delays are the items that are not due, the next on top. timer fires at
	// armed, the time of the first; zero if it is not set.
	delays order[*item[T]]
	timer  *time.Timer
	armed  time.Time

	spareItems pool[item[T]]
	spareLanes pool[lane[T]]
}

var _ priorityqueue.PriorityQueue[string] = (*Queue[string])(nil)

// New makes a queue. tenantOf names the tenant of a key; it must always give
// the same answer for the same key, and is called under the queue's lock.
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

// Len returns how many keys are due and wait for a worker, those of paused
// tenants included.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready
}

// lockedItem returns the record of a key, a new one if need be.
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

// lockedRelease gives the record back unless there is something to remember.
// The caller settles the lane.
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
// item that has become available, updates the lane's seat, and removes an empty
// lane.
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

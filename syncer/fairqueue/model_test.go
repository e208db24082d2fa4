package fairqueue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// maxWeight bounds the weights in randomised tests. All of them divide whole.
const maxWeight, whole = 4, 12

// model is a simple specification of the queue: plain maps, and loops over all
// keys. It does not predict the next key, but checks whether a key was allowed:
//
//  1. it was added, its delay has expired, and it has the highest of the
//     priorities that it was added with;
//  2. it is not in flight;
//  3. its tenant is not paused and below its cap, and its class has a free
//     worker: slow tenants share theirs according to SlowWorkers;
//  4. no key of the tenant at the same level was ready before it;
//  5. its level is the tenant's highest, except for one turn in share;
//  6. no other tenant of its class that could have been served all the time has
//     waited for more than two rounds of this one and a key since it was last
//     served: one round until its turn, and one that this one may make up for;
//     and no longer than it was charged for. A key is a round divided by the
//     weight.
//
// After each step the sizes must agree, and the queue must have a key to hand
// out exactly when the model has: no key is lost, and none is handed out twice.
type model struct {
	limit    int
	opts     Options
	slow     map[string]bool
	now      time.Time
	asks     map[string]*ask
	inFlight map[string]bool
	failures map[string]int
	paused   map[string]bool
	// passed counts a tenant's turns since a lower level was served.
	passed map[string]int
	// waited holds, for a tenant that can be served, the service that each
	// other tenant got since, in units of a round.
	waited  map[string]map[string]int
	weights map[string]int
	// charged holds what a tenant was charged since it was served, in units of
	// a round.
	charged map[string]int
	// clock orders items by when they became ready.
	clock int
}

// ask is a key that was added and not handed out.
type ask struct {
	priority int
	due      time.Time
	// rank is set while the key is ready: the lower, the earlier.
	rank int
}

func newModel(o Options) *model {
	return &model{
		limit: o.Cap, opts: o, now: time.Now(), slow: map[string]bool{},
		asks: map[string]*ask{}, inFlight: map[string]bool{}, failures: map[string]int{},
		paused: map[string]bool{}, passed: map[string]int{}, waited: map[string]map[string]int{}, weights: map[string]int{},
		charged: map[string]int{},
	}
}

func (m *model) add(key string, o priorityqueue.AddOpts) {
	after := max(o.After, 0)
	if o.RateLimited {
		backoff := min(DefaultBackoffBase<<min(m.failures[key], 30), DefaultBackoffMax)
		if after == 0 || backoff < after {
			after = backoff
		}
		m.failures[key]++
	}
	due, priority := m.now.Add(after), *o.Priority
	a := m.asks[key]
	if a == nil {
		a = &ask{priority: priority, due: due}
		m.asks[key] = a
	}
	if due.Before(a.due) {
		a.due = due
	}
	if levelOf(priority) < levelOf(a.priority) {
		a.rank = 0
	}
	a.priority = max(priority, a.priority)
	m.settle()
}

// settle ranks the asks that have become ready, the first due first.
func (m *model) settle() {
	var fresh []*ask
	for key, a := range m.asks {
		if a.rank == 0 && !a.due.After(m.now) && !m.inFlight[key] {
			fresh = append(fresh, a)
		}
	}
	slices.SortFunc(fresh, func(a, b *ask) int { return a.due.Compare(b.due) })
	for i, a := range fresh {
		if i == 0 || !a.due.Equal(fresh[i-1].due) {
			m.clock++ // Equal ranks may come in any order.
		}
		a.rank = m.clock
	}
	for _, tenant := range tenants() {
		if !slices.Contains(m.open(), tenant) {
			delete(m.waited, tenant)
		} else if m.waited[tenant] == nil {
			m.waited[tenant] = map[string]int{}
		}
		if !slices.Contains(m.known(), tenant) {
			delete(m.passed, tenant)
		}
	}
}

// ready returns the keys of a tenant that wait for a worker.
func (m *model) ready(tenant string) (keys []string) {
	for key, a := range m.asks {
		if tenantOf(key) == tenant && a.rank > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

func (m *model) held(tenant string) (n int) {
	for key := range m.inFlight {
		if tenantOf(key) == tenant {
			n++
		}
	}
	return n
}

// room reports whether a tenant's class has a worker for it.
func (m *model) room(tenant string) bool {
	busy := 0
	for _, other := range tenants() {
		if m.slow[other] == m.slow[tenant] {
			busy += m.held(other)
		}
	}
	if !m.slow[tenant] {
		return m.opts.Workers == 0 || busy < m.opts.Workers
	}
	most := m.opts.SlowWorkers
	return most == 0 || busy < most && (m.held(tenant) == 0 || 2*busy < most)
}

// open returns the tenants that can be served.
func (m *model) open() (open []string) {
	for _, tenant := range tenants() {
		if !m.paused[tenant] && m.held(tenant) < m.limit && len(m.ready(tenant)) > 0 && m.room(tenant) {
			open = append(open, tenant)
		}
	}
	return open
}

// records returns the keys with any state.
func (m *model) records() map[string]bool {
	keys := map[string]bool{}
	for key := range m.asks {
		keys[key] = true
	}
	for key := range m.inFlight {
		keys[key] = true
	}
	for key, n := range m.failures {
		if n > 0 {
			keys[key] = true
		}
	}
	return keys
}

// known returns the tenants with any state.
func (m *model) known() (known []string) {
	for key := range m.records() {
		known = append(known, tenantOf(key))
	}
	slices.Sort(known)
	return slices.Compact(known)
}

// get checks that a key may be handed out, and updates the model.
func (m *model) get(key string, priority int) error {
	tenant, a := tenantOf(key), m.asks[key]
	switch {
	case a == nil:
		return fmt.Errorf("%s: it was not added", key)
	case m.inFlight[key]:
		return fmt.Errorf("%s: a worker has it", key)
	case a.rank == 0:
		return fmt.Errorf("%s: due at %v, now is %v", key, a.due, m.now)
	case a.priority != priority:
		return fmt.Errorf("%s: priority %d, want %d", key, priority, a.priority)
	case !slices.Contains(m.open(), tenant):
		return fmt.Errorf("%s: paused %v, %d in flight", key, m.paused[tenant], m.held(tenant))
	}
	if err := m.order(key, a); err != nil {
		return err
	}
	if err := m.fairness(tenant); err != nil {
		return err
	}
	delete(m.asks, key)
	m.inFlight[key] = true
	m.settle()
	return nil
}

// order checks the order within the lane.
func (m *model) order(key string, a *ask) error {
	tenant, above, below := tenantOf(key), false, false
	for _, other := range m.ready(tenant) {
		o := m.asks[other]
		switch level := levelOf(o.priority); {
		case level < levelOf(a.priority):
			above = true
		case level > levelOf(a.priority):
			below = true
		case o.rank < a.rank:
			return fmt.Errorf("%s: %s was before it", key, other)
		}
	}
	turn := m.passed[tenant] == share-1
	switch {
	case above && !turn:
		return fmt.Errorf("%s: not of the highest level, after %d turns", key, m.passed[tenant])
	case above:
		m.passed[tenant] = 0
	case below && turn:
		return fmt.Errorf("%s: not the turn of the highest level", key)
	case below:
		m.passed[tenant]++
	}
	return nil
}

// fairness checks that no other tenant waited too long.
func (m *model) fairness(tenant string) error {
	key := m.key(tenant)
	for _, other := range m.open() {
		if other == tenant || m.slow[other] != m.slow[tenant] {
			continue
		}
		m.waited[other][tenant] += key
		if got := m.waited[other][tenant]; got > 2*whole+key+m.charged[other] {
			return fmt.Errorf("%s got %d/%d of a round while %s waited", tenant, got, whole, other)
		}
	}
	m.waited[tenant], m.charged[tenant] = map[string]int{}, 0
	return nil
}

// key returns the cost of a tenant's key, in units of a round.
func (m *model) key(tenant string) int { return whole / max(m.weights[tenant], 1) }

func (m *model) charge(key string, more int) {
	if tenant := tenantOf(key); m.inFlight[key] {
		m.charged[tenant] += more * m.key(tenant)
	}
}

func (m *model) done(key string) {
	delete(m.inFlight, key)
	m.settle()
}

func (m *model) drop(tenant string) {
	for _, key := range keys() {
		if tenantOf(key) == tenant {
			delete(m.asks, key)
			delete(m.failures, key)
		}
	}
	delete(m.paused, tenant)
	delete(m.weights, tenant)
	m.setSlow(tenant, false)
}

// setSlow moves a tenant to a class. Its earlier turns do not count there.
func (m *model) setSlow(tenant string, slow bool) {
	if m.slow[tenant] != slow {
		m.slow[tenant] = slow
		delete(m.waited, tenant)
		for _, waited := range m.waited {
			delete(waited, tenant)
		}
	}
	m.settle()
}

// check compares the sizes of the queue and the model.
func (m *model) check(t *testing.T, q *Queue[string]) {
	t.Helper()
	total := 0
	for _, tenant := range tenants() {
		waiting, held := len(m.ready(tenant)), m.held(tenant)
		total += waiting
		if q.LaneLen(tenant) != waiting || q.InFlight(tenant) != held {
			t.Fatalf("%s: %d due and %d in flight, want %d and %d",
				tenant, q.LaneLen(tenant), q.InFlight(tenant), waiting, held)
		}
	}
	if q.Len() != total {
		t.Fatalf("length %d, want %d", q.Len(), total)
	}
	if open := m.open(); q.available() != (len(open) > 0) {
		t.Fatalf("has something to hand out: %v; tenants that wait: %v", q.available(), open)
	}
	for _, key := range keys() {
		if n := q.NumRequeues(key); n != m.failures[key] {
			t.Fatalf("%s: %d failures, want %d", key, n, m.failures[key])
		}
	}
	if len(q.items) != len(m.records()) || len(q.lanes)-q.owing() != len(m.known()) {
		t.Fatalf("%d records in %d lanes, want %d in %d", len(q.items), len(q.lanes)-q.owing(), len(m.records()), len(m.known()))
	}
}

package fairqueue

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func tenants() []string { return []string{"a", "b", "c"} }

func keys() []string {
	return []string{"a/1", "a/2", "a/3", "a/4", "b/1", "b/2", "b/3", "b/4", "c/1", "c/2"}
}

// FuzzQueue interprets its input as operations, and compares the queue with the
// model.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 4, 5, 6, 7, 7})
	f.Add([]byte{3, 0, 0, 0, 3, 0, 12, 255, 5, 6, 3, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		synctest.Test(t, func(t *testing.T) { compare(t, ops) })
	})
}

// TestRandom is FuzzQueue with long inputs from a fixed seed.
func TestRandom(t *testing.T) {
	rounds := uint64(100)
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		random := rand.New(rand.NewPCG(seed, 0))
		ops := make([]byte, 2_000)
		for i := range ops {
			ops[i] = byte(random.Uint32())
		}
		synctest.Test(t, func(t *testing.T) { compare(t, ops) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// pair runs each operation on the queue and on the model.
type pair struct {
	*Queue[string]
	model *model
	ops   []byte
}

// next consumes an operand below n.
func (p *pair) next(n int) int {
	if len(p.ops) == 0 {
		return 0
	}
	b := p.ops[0]
	p.ops = p.ops[1:]
	return int(b) % n
}

func (p *pair) tenant() string { return tenants()[p.next(len(tenants()))] }

func (p *pair) key() string { return keys()[p.next(len(keys()))] }

func compare(t *testing.T, ops []byte) {
	p := &pair{ops: ops}
	o := Options{Cap: 1 + p.next(3), Workers: p.next(4), SlowWorkers: p.next(5)}
	p.Queue, p.model = New(tenantOf, o), newModel(o)
	for len(p.ops) > 0 {
		p.step(t)
		p.model.check(t, p.Queue)
	}
	p.finish(t)
}

func (p *pair) step(t *testing.T) {
	t.Helper()
	switch p.next(16) {
	case 0, 1, 2:
		p.add(priorityqueue.AddOpts{})
	case 3:
		p.add(priorityqueue.AddOpts{After: time.Duration(p.next(100)) * time.Millisecond})
	case 4:
		p.add(priorityqueue.AddOpts{RateLimited: true})
	case 5, 6, 7, 8:
		p.get(t)
	case 9, 10, 11:
		p.done()
	case 12:
		p.wait(time.Duration(p.next(50)) * time.Millisecond)
	case 13:
		p.weigh(p.tenant(), 1+p.next(maxWeight))
	default:
		p.rare()
	}
}

// rare makes disruptive operations less frequent.
func (p *pair) rare() {
	switch p.next(10) {
	case 0:
		tenant := p.tenant()
		p.Drop(tenant)
		p.model.drop(tenant)
	case 1:
		key := p.key()
		p.Forget(key)
		delete(p.model.failures, key)
		p.model.settle()
	case 2, 3:
		p.pause(p.tenant(), true)
	case 4, 5:
		key, more := p.key(), p.next(10)
		p.Charge(key, more)
		p.model.charge(key, more)
	case 6, 7:
		tenant, slow := p.tenant(), p.next(2) == 0
		p.SetSlow(tenant, slow)
		p.model.setSlow(tenant, slow)
	default:
		p.pause(p.tenant(), false)
	}
}

func (p *pair) add(o priorityqueue.AddOpts) {
	o.Priority = new(p.next(5) - 2)
	key := p.key()
	p.AddWithOpts(o, key)
	p.model.add(key, o)
}

func (p *pair) get(t *testing.T) {
	t.Helper()
	if len(p.model.open()) == 0 {
		return
	}
	key, priority, _ := p.GetWithPriority()
	if err := p.model.get(key, priority); err != nil {
		t.Fatal(err)
	}
}

// done mostly finishes a key in flight, and sometimes any key.
func (p *pair) done() {
	key := p.key()
	for _, held := range slices.Sorted(maps.Keys(p.model.inFlight)) {
		if p.next(2) == 0 {
			key = held
			break
		}
	}
	p.Done(key)
	p.model.done(key)
}

func (p *pair) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	p.model.now = time.Now()
	p.model.settle()
}

func (p *pair) pause(tenant string, paused bool) {
	if paused {
		p.Pause(tenant)
	} else {
		p.Resume(tenant)
	}
	p.model.paused[tenant] = paused
	p.model.settle()
}

func (p *pair) weigh(tenant string, weight int) {
	p.SetWeight(tenant, int32(weight))
	p.model.weights[tenant] = weight
}

// finish drains the queue, and checks that no state is left.
func (p *pair) finish(t *testing.T) {
	t.Helper()
	for _, tenant := range tenants() {
		p.pause(tenant, false)
		p.weigh(tenant, 1)
		p.SetSlow(tenant, false)
		p.model.setSlow(tenant, false)
	}
	for _, key := range keys() {
		p.Done(key)
		p.model.done(key)
	}
	p.wait(DefaultBackoffMax)
	for len(p.model.open()) > 0 {
		key, priority, _ := p.GetWithPriority()
		if err := p.model.get(key, priority); err != nil {
			t.Fatal(err)
		}
		p.Done(key)
		p.model.done(key)
		p.model.check(t, p.Queue)
	}
	for _, key := range keys() {
		p.Forget(key)
	}
	if len(p.model.asks) > 0 {
		t.Fatalf("never handed out: %v", p.model.asks)
	}
	checkEmpty(t, p.Queue)
	p.ShutDown()
}

package share

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// The model has replicas that share a store of leases. Each does one step at a
// time, in random order. Between any two steps of one, the others can do any
// number of steps.

// modelTenants is the number of tenants.
const modelTenants = 12

func modelTenant(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: fmt.Sprint("t", i)}
}

// modelLease is a lease in the store.
type modelLease struct {
	view    view
	version int
}

// modelWrite is a write in flight.
type modelWrite struct {
	replica string
	modelLease
}

// model is the store, the replicas, and the writes in flight.
type model struct {
	random   *rand.Rand
	leases   map[string]modelLease
	version  int
	replicas []*modelReplica
	late     []modelWrite
	calm     bool // no more faults
}

// modelReplica is a replica: its next step, and the tenants that it serves.
type modelReplica struct {
	*member
	step    func()
	shares  Shares
	serving map[int]bool
	known   modelLease // its lease as last read
	fenced  bool       // its lease has expired: it writes nothing, whatever it serves
	asleep  int
}

// join adds a replica with a lease without a view.
func (m *model) join() {
	r := &modelReplica{member: &member{replica: fmt.Sprintf("vc-syncer-%010x", m.random.Uint64N(1<<40))}}
	m.replicas = append(m.replicas, r)
	m.begin(r)
}

// begin lets a replica share the tenants from the start, of which it serves none:
// with the lease that it had, or with one without a view.
func (m *model) begin(r *modelReplica) {
	if _, ok := m.leases[r.replica]; !ok {
		m.version++
		m.leases[r.replica] = modelLease{version: m.version}
	}
	r.known = m.leases[r.replica]
	r.member, r.shares, r.serving, r.fenced = &member{replica: r.replica}, Shares{}, map[int]bool{}, false
	r.step = func() { m.list(r) }
}

// list reads the leases, and schedules the replica to apply them.
func (m *model) list(r *modelReplica) {
	others := claims{}
	for id, l := range m.leases {
		if id != r.replica {
			others[id] = l.view
		}
	}
	r.step = func() { m.act(r, others) }
}

// act stops to serve tenants that are not assigned to the replica, and
// schedules publishing its view.
func (m *model) act(r *modelReplica, others claims) {
	shares, publish := r.observe(others)
	r.shares = shares
	maps.DeleteFunc(r.serving, func(t int, _ bool) bool { return !shares.Keeps(modelTenant(t)) })
	r.step = func() { m.list(r) }
	if publish {
		r.step = func() { m.publish(r) }
	}
}

// publish writes the view. The answer may get lost, and the write may be late.
func (m *model) publish(r *modelReplica) {
	write := modelWrite{r.replica, modelLease{r.view, r.known.version}}
	r.step = func() { m.list(r) }
	switch outcome := m.random.IntN(4); {
	case outcome == 0 && !m.calm: // lost
	case outcome == 1 && !m.calm:
		m.late = append(m.late, write)
	case outcome == 2 && !m.calm: // written, and the answer is lost
		m.write(write)
	default:
		if m.write(write) {
			r.wrote()
		}
	}
	r.known = m.leases[r.replica] // read because of a conflict
}

// write writes a lease unless it was changed meanwhile.
func (m *model) write(w modelWrite) bool {
	if now, ok := m.leases[w.replica]; !ok || now.version != w.version {
		return false
	}
	m.version++
	m.leases[w.replica] = modelLease{w.view, m.version}
	return true
}

// begin begins to serve a tenant, if that is allowed.
func (r *modelReplica) begin(t int) {
	if r.shares.Begins(modelTenant(t)) {
		r.serving[t] = true
	}
}

// chance does one random step.
func (m *model) chance() {
	r := m.replicas[m.random.IntN(len(m.replicas))]
	switch what := m.random.IntN(100); {
	case what == 0 && len(m.replicas) < 9 && !m.calm:
		m.join()
	case what == 1 && !m.calm:
		r.asleep = m.random.IntN(200)
	case what == 2 && r.asleep > 0 && !r.fenced: // it sleeps for longer than its lease
		r.fenced = true
	case what < 5 && r.fenced:
		delete(m.leases, r.replica)
	case what < 6 && r.fenced && r.asleep == 0:
		m.begin(r)
	case what < 7 && len(m.late) > 0:
		m.write(m.late[0])
		m.late = m.late[1:]
	case r.asleep > 0:
		r.asleep--
	case what < 50:
		r.begin(m.random.IntN(modelTenants))
	default:
		r.step()
	}
}

// owners returns the replicas that write for a tenant.
func (m *model) owners(t int) []string {
	var owners []string
	for _, r := range m.replicas {
		if r.serving[t] && !r.fenced {
			owners = append(owners, r.replica)
		}
	}
	return owners
}

func TestATenantHasOneOwner(t *testing.T) {
	const runs, steps = 60, 2000
	for seed := range uint64(runs) {
		m := &model{random: rand.New(rand.NewPCG(seed, 1)), leases: map[string]modelLease{}}
		m.join()
		for step := range steps {
			m.calm = step > steps*2/3
			m.chance()
			for i := range modelTenants {
				if owners := m.owners(i); len(owners) > 1 {
					t.Fatalf("seed %d, step %d: tenant %d is served by %v", seed, step, i, owners)
				}
			}
		}
		m.settle()
		for i := range modelTenants {
			if owners := m.owners(i); len(owners) != 1 && len(m.alive()) > 0 {
				t.Fatalf("seed %d: in the end tenant %d is served by %v, of %v", seed, i, owners, m.alive())
			}
		}
	}
}

// alive returns the replicas that have a lease.
func (m *model) alive() []string { return slices.Sorted(maps.Keys(m.leases)) }

// settle deletes the leases of dead replicas, and lets the others complete all
// steps.
func (m *model) settle() {
	for _, r := range m.replicas {
		if r.fenced {
			delete(m.leases, r.replica)
		}
	}
	for range 40 {
		for _, r := range m.replicas {
			if r.fenced {
				continue
			}
			r.step()
			for t := range modelTenants {
				r.begin(t)
			}
		}
	}
}

// TestTenantsAreDividedEvenly uses realistic names of replicas and tenants.
func TestTenantsAreDividedEvenly(t *testing.T) {
	const tenants, replicas = 600, 3
	for seed := range uint64(20) {
		random, among := rand.New(rand.NewPCG(seed, 2)), view{}
		for range replicas {
			among = append(among, fmt.Sprintf("vc-syncer-%010x", random.Uint64N(1<<40)))
		}
		count := map[string]int{}
		for i := range tenants {
			for _, id := range among {
				if among.gives(types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("tenant-%03d", i)}, id) {
					count[id]++
				}
			}
		}
		for _, id := range among {
			if n := count[id]; n < tenants/replicas/2 || n > tenants/replicas*3/2 {
				t.Errorf("seed %d: %s has %d of %d tenants", seed, id, n, tenants)
			}
		}
	}
}

func TestShares(t *testing.T) {
	red := types.NamespacedName{Namespace: "team", Name: "red"}
	for name, tc := range map[string]struct {
		shares        Shares
		keeps, begins bool
	}{
		"an empty view assigns no tenant":        {Shares{replica: "a"}, false, false},
		"alone, but the leases were not listed":  {Shares{replica: "a", view: view{"a"}}, true, false},
		"alone":                                  {Shares{replica: "a", view: view{"a"}, listed: true}, true, true},
		"another claims nothing yet":             {Shares{replica: "a", view: view{"a"}, listed: true, claims: claims{"b": nil}}, true, true},
		"another still serves it":                {Shares{replica: "a", view: view{"a"}, listed: true, claims: claims{"b": {"b"}}}, true, false},
		"another knows of us, and it is our own": {Shares{replica: "a", view: view{"a"}, listed: true, claims: claims{"b": {"a"}}}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if keeps := tc.shares.Keeps(red); keeps != tc.keeps {
				t.Errorf("keeps: %t", keeps)
			}
			if begins := tc.shares.Begins(red); begins != tc.begins {
				t.Errorf("begins: %t", begins)
			}
		})
	}
}

package networks

import (
	"cmp"
	"sync"

	"github.com/virtualcluster/virtualcluster/syncer/pending"
)

// Table has the networks of one tenant, for those who sync its pods and
// Services.
type Table struct {
	first string // the name of the default network
	specs Specs

	mu sync.Mutex
	// known is set when the networks have been read.
	known    bool
	networks map[string]*entry
}

// entry is one network in the table.
type entry struct {
	usable  bool
	message string
	// record is that for pods; empty if they are not prepared.
	record string
	// users is how many copies are being created in the network.
	users int
	// gone is set for a network that does not exist, and has users.
	gone bool
}

// NewTable returns the table of a tenant whose networks are not known yet.
func NewTable(first string) *Table {
	return &Table{first: first, networks: map[string]*entry{}}
}

// Name returns the name of the network that an object names; of the default one
// for an object that names none.
func (t *Table) Name(named string) string { return cmp.Or(named, t.first) }

// Use registers that a copy is created in a network, until release is called.
// The error of a network that cannot be used is a [pending.BlockedError] or a
// [pending.WaitingError].
func (t *Table) Use(name string) (release func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.networks[name]
	switch {
	case !t.known:
		return nil, &pending.WaitingError{On: "the networks of the cluster to be read"}
	case e == nil || e.gone:
		return nil, &pending.BlockedError{On: "Network " + name}
	case !e.usable:
		return nil, &pending.WaitingError{On: "Network " + name + " to be ready: " + e.message}
	}
	e.users++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		e.users--
		if e.gone && e.users == 0 && t.networks[name] == e {
			delete(t.networks, name)
		}
	}), nil
}

// Record returns the network for the annotation of copies that its provider
// prepares; empty if it prepares none. The network is in use.
func (t *Table) Record(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.networks[name]; e != nil {
		return e.record
	}
	return ""
}

// released reports whether a network is not usable, and no copy is being created
// in it.
func (t *Table) released(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.networks[name]
	return t.known && (e == nil || !e.usable && e.users == 0)
}

// set replaces the networks, and returns the names of those for which Use
// returns something else than before.
func (t *Table) set(decisions map[string]decision) (changed []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, d := range decisions {
		e := t.networks[name]
		if e == nil {
			e = &entry{gone: true}
			t.networks[name] = e
		}
		if e.gone || e.usable != d.usable || !d.usable && e.message != d.message || !t.known {
			changed = append(changed, name)
		}
		e.usable, e.message, e.record, e.gone = d.usable, d.message, d.record, false
	}
	for name, e := range t.networks {
		if _, exists := decisions[name]; exists || e.gone {
			continue
		}
		changed = append(changed, name)
		if e.gone, e.usable = true, false; e.users == 0 {
			delete(t.networks, name)
		}
	}
	t.known = true
	return changed
}

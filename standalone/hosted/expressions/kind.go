package expressions

import (
	"maps"
	"slices"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// kind has the records of a resource. It receives their changes.
type kind struct {
	account      *Account
	resource     string
	subscription *feed.Subscription

	// The mutex of the account guards all below.
	records map[string]*record // by name
	// received is the revision up to which all changes were received.
	received int64
	// listing: the changes are those of a list, which are in no order.
	listing bool
}

// record is an object that has expressions, or is being written.
type record struct {
	// stored is the work of its expressions since a revision, if that was not
	// received yet.
	stored, revision int64
	// wanted is the most that one of the writers in flight wants to store.
	wanted  int64
	writers int
}

// charge is what counts of a record.
func (r *record) charge() int64 { return max(r.stored, r.wanted) }

// Receive implements feed.Receiver.
func (k *kind) Receive(change feed.Change) {
	work := int64(0)
	known := k.knows(change)
	if !known && change.Value != nil {
		work = k.account.work(k.resource, change.Value) // takes a while
	}
	k.account.mu.Lock()
	defer k.account.mu.Unlock()
	if !k.listing {
		k.received = max(k.received, change.Revision)
	}
	k.lockedChange(change.Name, func(r *record) {
		if !known && change.Revision >= r.revision {
			r.stored, r.revision = work, change.Revision
		}
	})
}

// knows reports whether a change is that of a write of this process, or older.
func (k *kind) knows(change feed.Change) bool {
	k.account.mu.Lock()
	defer k.account.mu.Unlock()
	r := k.records[change.Name]
	return r != nil && change.Revision <= r.revision
}

// Names implements feed.Receiver. It is the beginning of a list.
func (k *kind) Names() []string {
	k.account.mu.Lock()
	defer k.account.mu.Unlock()
	k.listing = true
	return slices.Collect(maps.Keys(k.records))
}

// Listed implements feed.Receiver.
func (k *kind) Listed(revision int64) {
	k.account.mu.Lock()
	defer k.account.mu.Unlock()
	k.listing = false
	k.received = max(k.received, revision)
	maps.DeleteFunc(k.records, func(_ string, r *record) bool { return k.isIdle(r) })
}

// lockedCharge returns what counts of a record.
func (k *kind) lockedCharge(name string) int64 {
	if r := k.records[name]; r != nil {
		return r.charge()
	}
	return 0
}

// lockedStored records what was stored at a revision, unless that has been received:
// the record may have changed since then.
func (k *kind) lockedStored(name string, work, revision int64) {
	if revision <= k.received {
		return
	}
	k.lockedChange(name, func(r *record) {
		if revision > r.revision {
			r.stored, r.revision = work, revision
		}
	})
}

// lockedChange changes a record, which exists while it counts or is being written.
func (k *kind) lockedChange(name string, change func(*record)) {
	r := k.records[name]
	if r == nil {
		r = &record{}
		k.records[name] = r
	}
	before := r.charge()
	change(r)
	k.account.used += r.charge() - before
	if k.isIdle(r) {
		delete(k.records, name)
	}
}

// isIdle reports whether a record need not be remembered: it has no expressions,
// and all changes of it were received.
func (k *kind) isIdle(r *record) bool {
	return r.charge() == 0 && r.writers == 0 && r.revision <= k.received
}

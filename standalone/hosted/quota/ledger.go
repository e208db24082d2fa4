package quota

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Ledger accounts for what every control plane stores. The key of a record
// begins with a root, the name of its control plane and a slash.
type Ledger struct {
	root string
	seed maphash.Seed

	mu       sync.Mutex // guards all below
	accounts map[string]*account
	// capacity limits total, the bytes of all control planes together. Zero
	// means no limit.
	capacity, total int64
	revision        int64
	// superseded is the number of bytes that were overwritten or deleted.
	superseded int64
	// settling has the reservations of successful writes whose revisions the
	// ledger has not seen.
	settling []*reservation
}

// account has the records of one control plane.
type account struct {
	limits Limits
	// pace and bytePace limit the writes and their bytes; nil without a limit.
	pace     *rate.Limiter
	bytePace *rate.Limiter
	used     Usage
	// largest is the size of the largest record since the ledger was created.
	largest  int64
	reserved Usage
	rejected map[Reason]int64
	// sizes has the sizes of records by the hash of their keys.
	sizes map[uint64]uint32
}

// Reason is the limit that a write exceeded.
type Reason string

const (
	// ReasonStorage means the storage limit of the control plane.
	ReasonStorage Reason = "storage"
	// ReasonPace means the limit of the pace of writes.
	ReasonPace Reason = "pace"
	// ReasonStore means the storage limit of all control planes together.
	ReasonStore Reason = "store"
)

// reservation is the growth that a write in flight may cause.
type reservation struct {
	account  *account
	change   Usage
	revision int64
}

// NewLedger returns an empty ledger of the keys that begin with root, which may
// have as many bytes as capacity; zero means no limit.
func NewLedger(root string, capacity int64) *Ledger {
	return &Ledger{root: root, seed: maphash.MakeSeed(), accounts: map[string]*account{}, capacity: capacity}
}

// SetLimits sets the limits of a control plane, which may be below what it
// stores.
func (l *Ledger) SetLimits(name string, limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lockedAccount(name)
	a.limits = limits
	a.pace, a.bytePace = limiterOf(limits.WritesPerSecond), limiterOf(limits.WriteBytesPerSecond)
}

// limiterOf returns a limiter of a rate per second; nil if there is no limit.
func limiterOf(limit int64) *rate.Limiter {
	if limit <= 0 {
		return nil
	}
	burst := min(limit, math.MaxInt64/WriteBurst) * WriteBurst
	return rate.NewLimiter(rate.Limit(limit), int(burst))
}

// Forget deletes the account of a control plane whose records have been
// deleted.
func (l *Ledger) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[name]; a != nil {
		l.total -= a.used.Bytes
		l.superseded += a.used.Bytes
	}
	delete(l.accounts, name)
}

// Usage returns what a control plane stores.
func (l *Ledger) Usage(name string) Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[name]; a != nil {
		return a.used
	}
	return Usage{}
}

// Largest returns the size of the largest record that a control plane has had
// since the ledger was created.
func (l *Ledger) Largest(name string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[name]; a != nil {
		return a.largest
	}
	return 0
}

// Status returns the limits and the usage of a control plane, and how many of
// its writes were rejected.
func (l *Ledger) Status(name string) (limits Limits, used Usage, rejected map[Reason]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[name]; a != nil {
		return a.limits, a.used, maps.Clone(a.rejected)
	}
	return Limits{}, Usage{}, nil
}

// Superseded returns how many bytes have been overwritten or deleted since the
// ledger was created, and its latest revision.
func (l *Ledger) Superseded() (bytes, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.superseded, l.revision
}

// History returns what Superseded does, as a [Keeper] needs it.
func (l *Ledger) History(context.Context) (bytes, revision int64, err error) {
	bytes, revision = l.Superseded()
	return bytes, revision, nil
}

func (l *Ledger) lockedAccount(name string) *account {
	a := l.accounts[name]
	if a == nil {
		a = &account{rejected: map[Reason]int64{}, sizes: map[uint64]uint32{}}
		l.accounts[name] = a
	}
	return a
}

// put records a write.
func (l *Ledger) put(key []byte, size int) {
	name, ok := l.nameOf(key)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a, hash := l.lockedAccount(name), maphash.Bytes(l.seed, key)
	old, exists := a.sizes[hash]
	if !exists {
		a.used.Objects++
	}
	a.used.Bytes += int64(size) - int64(old)
	a.largest = max(a.largest, int64(size))
	l.total += int64(size) - int64(old)
	a.sizes[hash] = uint32(size) //nolint:gosec // etcd accepts no records of 4 GiB
	l.superseded += int64(old)
}

// remove records a deletion.
func (l *Ledger) remove(key []byte) {
	name, ok := l.nameOf(key)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[name]
	if a == nil {
		return
	}
	hash := maphash.Bytes(l.seed, key)
	old, exists := a.sizes[hash]
	if !exists {
		return
	}
	delete(a.sizes, hash)
	a.used.Bytes -= int64(old)
	a.used.Objects--
	l.total -= int64(old)
	l.superseded += int64(old)
}

// record records a change.
func (l *Ledger) record(c change) {
	if c.deleted {
		l.remove(c.key)
	} else {
		l.put(c.key, c.size)
	}
}

// replace replaces what a control plane stores.
func (l *Ledger) replace(name string, records []change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lockedAccount(name)
	l.total -= a.used.Bytes
	a.used, a.sizes = Usage{}, make(map[uint64]uint32, len(records))
	for _, r := range records {
		a.sizes[maphash.Bytes(l.seed, r.key)] = uint32(r.size) //nolint:gosec // etcd accepts no records of 4 GiB
		a.used.Bytes += int64(r.size)
		a.used.Objects++
		a.largest = max(a.largest, int64(r.size))
	}
	l.total += a.used.Bytes
}

// close deletes the account of a control plane whose records remain.
func (l *Ledger) close(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, name)
}

// SetTotal sets what all control planes store together, if the ledger has the
// accounts of some only.
func (l *Ledger) SetTotal(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total = bytes
}

// reached records that all changes up to a revision are known.
func (l *Ledger) reached(revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revision = max(l.revision, revision)
	still := l.settling[:0]
	for _, r := range l.settling {
		if r.revision > l.revision {
			still = append(still, r)
		} else {
			r.lockedRelease()
		}
	}
	clear(l.settling[len(still):])
	l.settling = still
}

func (r *reservation) lockedRelease() {
	r.account.reserved.Bytes -= r.change.Bytes
	r.account.reserved.Objects -= r.change.Objects
}

// reserve admits the writes of one request, all of the same control plane. If
// it rejects them, reason is the limit that they exceed. Otherwise the caller
// must call settle with the revision of the writes, zero if none.
func (l *Ledger) reserve(writes []write, purpose Purpose, now time.Time) (settle func(revision int64), reason Reason, err error) {
	name, ok := l.nameOf(writes[0].key)
	if !ok {
		return func(int64) {}, "", nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[name]
	if a == nil {
		return func(int64) {}, "", nil
	}
	if areAllocations(writes, l.root+name+"/") {
		purpose = Vital
	}
	change, reason, err := l.lockedAdmit(a, writes, purpose, now)
	if err != nil {
		a.rejected[reason]++
		return nil, reason, err
	}
	change = Usage{Bytes: max(change.Bytes, 0), Objects: max(change.Objects, 0)}
	a.reserved.Bytes += change.Bytes
	a.reserved.Objects += change.Objects
	return l.settle(&reservation{account: a, change: change}), "", nil
}

// lockedAdmit returns what the writes add to an account, or the limit that they
// exceed.
func (l *Ledger) lockedAdmit(a *account, writes []write, purpose Purpose, now time.Time) (change Usage, reason Reason, err error) {
	change, total := l.lockedChange(a, writes)
	known := Usage{Bytes: a.used.Bytes + a.reserved.Bytes, Objects: a.used.Objects + a.reserved.Objects}
	if err := a.limits.check(known, change, purpose); err != nil {
		return change, ReasonStorage, err
	}
	if l.capacity > 0 && purpose == Ordinary && change.Bytes > 0 && l.total+change.Bytes > l.capacity {
		return change, ReasonStore, errors.New("the store of this platform is full: delete objects, or ask the platform's administrator")
	}
	return change, ReasonPace, a.checkPace(total, purpose, now)
}

// areAllocations reports whether an apiserver writes its own allocations, which
// are a few records of a fixed size that no client can name.
func areAllocations(writes []write, prefix string) bool {
	for _, w := range writes {
		if !strings.HasPrefix(string(w.key), prefix+"ranges/") {
			return false
		}
	}
	return true
}

func (l *Ledger) settle(r *reservation) func(revision int64) {
	return func(revision int64) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if revision <= l.revision {
			r.lockedRelease()
			return
		}
		r.revision = revision
		l.settling = append(l.settling, r)
	}
}

// lockedChange returns the growth that the writes cause, and their total size.
func (l *Ledger) lockedChange(a *account, writes []write) (change Usage, total int64) {
	for _, w := range writes {
		old, exists := a.sizes[maphash.Bytes(l.seed, w.key)]
		if !exists {
			change.Objects++
		}
		change.Bytes += int64(w.size) - int64(old)
		total += int64(w.size)
	}
	return change, total
}

// nameOf returns the control plane of a key.
func (l *Ledger) nameOf(key []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(key, []byte(l.root))
	if !ok {
		return "", false
	}
	name, _, ok := bytes.Cut(rest, []byte("/"))
	return string(name), ok
}

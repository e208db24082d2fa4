// Package stored counts what converted tenants store in the super cluster: the
// objects of all kinds, and their bytes.
package stored

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Amount is how much a tenant stores. As a limit, what is not positive is none.
type Amount struct{ Objects, Bytes int64 }

// Write is a write that the super cluster is about to execute.
type Write struct {
	// UID is that of the object, and Version the one that the write changes; empty
	// for a creation.
	UID     types.UID
	Version string
	// Growth is what the write adds, and Bytes the size of the object after it.
	Growth Amount
	Bytes  int64
	// Dry: it is not executed.
	Dry bool
}

// Grows reports whether the tenant stores more after the write.
func (w Write) Grows() bool { return w.Growth.Objects > 0 || w.Growth.Bytes > 0 }

// staleAfter is how long a write counts of which no event is seen, such as one
// that another webhook has rejected.
const staleAfter = time.Minute

// Usage is what all tenants store, by the events of the super cluster, and by the
// writes that were allowed and whose events are yet to come.
type Usage struct {
	// Active reports whether all writes by tenants are reserved here; nil for always.
	Active func() bool

	mu      sync.Mutex
	tenants map[string]*tenant
}

type tenant struct {
	stored Amount
	// pending are the writes of each object, one for each version that they change:
	// of those that change the same, only one succeeds.
	pending map[types.UID][]pending
	// rejected is when a write was rejected last.
	rejected time.Time
}

// pending is a write whose event is yet to come.
type pending struct {
	Write

	at time.Time
}

// NewUsage returns the usage of a super cluster without converted tenants.
func NewUsage() *Usage { return &Usage{tenants: map[string]*tenant{}} }

// Reserve counts a write, or returns an error if it would exceed a limit. A write
// that does not grow is always allowed.
func (u *Usage) Reserve(key string, write Write, most Amount) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.lockedTenant(key)
	t.forgetStale()
	if err := t.check(write, most); err != nil {
		t.rejected = time.Now()
		return err
	}
	if !write.Dry {
		t.add(write)
	}
	return nil
}

// add counts a write.
func (t *tenant) add(write Write) {
	write.Growth = Amount{Objects: max(write.Growth.Objects, 0), Bytes: max(write.Growth.Bytes, 0)}
	all := t.pending[write.UID]
	i := slices.IndexFunc(all, func(p pending) bool { return p.Version == write.Version })
	if i < 0 {
		t.pending[write.UID] = append(all, pending{write, time.Now()})
		return
	}
	write.Growth.Objects = max(write.Growth.Objects, all[i].Growth.Objects)
	write.Growth.Bytes = max(write.Growth.Bytes, all[i].Growth.Bytes)
	write.Bytes = max(write.Bytes, all[i].Bytes)
	all[i] = pending{write, time.Now()}
}

// reportOf returns what a tenant stores, and whether a write was rejected lately.
func (u *Usage) reportOf(key string, most Amount) report {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.tenants[key]
	if t == nil {
		return report{most: most}
	}
	return report{stored: t.stored, most: most, rejected: time.Since(t.rejected) < calm}
}

// check returns an error if a write would exceed a limit.
func (t *tenant) check(write Write, most Amount) error {
	used := t.used(write)
	if more := write.Growth.Objects; more > 0 && most.Objects > 0 && used.Objects+more > most.Objects {
		return fmt.Errorf("the cluster has %d objects of all kinds, and no more than %d are allowed: delete some", used.Objects, most.Objects)
	}
	if more := write.Growth.Bytes; more > 0 && most.Bytes > 0 && used.Bytes+more > most.Bytes {
		return fmt.Errorf("the objects of the cluster have %s, %s more are needed, and no more than %s are allowed: delete some",
			text(used.Bytes), text(more), text(most.Bytes))
	}
	return nil
}

func text(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() + "B" }

// observe counts an event of an object: how it was, and how it is in a version.
func (u *Usage) observe(key string, uid types.UID, version string, was, is Amount) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.lockedTenant(key)
	t.stored.Objects += is.Objects - was.Objects
	t.stored.Bytes += is.Bytes - was.Bytes
	t.forget(uid, func(write pending) bool { return is.Objects == 0 || isNewer(version, write.Version) })
	if t.stored == (Amount{}) && len(t.pending) == 0 {
		delete(u.tenants, key)
	}
}

// written returns the size of an object after the writes that changed the version
// was, or a later one, and whose event is in a version; false if there are none.
func (u *Usage) written(key string, uid types.UID, was, version string) (bytes int64, found bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.tenants[key]
	if t == nil {
		return 0, false
	}
	for _, write := range t.pending[uid] {
		if isNewer(version, write.Version) && (was == "" || !isNewer(was, write.Version)) {
			bytes, found = max(bytes, write.Bytes), true
		}
	}
	return bytes, found
}

// isNewer reports whether an event in a version is newer than what a write
// changes.
func isNewer(version, changes string) bool {
	if changes == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(version, changes)
	return err != nil || order > 0
}

// isComplete reports whether the writes by tenants are known.
func (u *Usage) isComplete() bool { return u.Active == nil || u.Active() }

func (u *Usage) lockedTenant(key string) *tenant {
	t := u.tenants[key]
	if t == nil {
		t = &tenant{pending: map[types.UID][]pending{}}
		u.tenants[key] = t
	}
	return t
}

// used returns what the tenant stores, apart from a pending write that changes the
// same as another one.
func (t *tenant) used(except Write) Amount {
	used := t.stored
	for uid, writes := range t.pending {
		for _, write := range writes {
			if uid == except.UID && write.Version == except.Version {
				continue
			}
			used.Objects += write.Growth.Objects
			used.Bytes += write.Growth.Bytes
		}
	}
	return used
}

func (t *tenant) forgetStale() {
	for uid := range t.pending {
		t.forget(uid, func(write pending) bool { return time.Since(write.at) > staleAfter })
	}
}

// forget removes pending writes of an object.
func (t *tenant) forget(uid types.UID, which func(pending) bool) {
	if t.pending[uid] = slices.DeleteFunc(t.pending[uid], which); len(t.pending[uid]) == 0 {
		delete(t.pending, uid)
	}
}

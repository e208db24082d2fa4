package caches

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Recent holds the writes to one side that are not in its cache yet, so that a
// reconcile reads its own writes and repeats none. An entry lives from the
// answer to a write until its event arrives; an entry whose event came before
// the answer is deleted when it is read again, or after a while.
//
// The answer to a write may also arrive after the event of the object's
// deletion; so deletions are remembered as long.
type Recent struct {
	mu      sync.Mutex
	written map[kinds.ObjectKey]write
	ends    Expiring[kinds.ObjectKey, end]
	swept   time.Time
}

// lifetime is how long a write can be ahead of its event. A cache that lags
// longer was disconnected, and will be filled again.
const lifetime = time.Minute

// maxEnds is how many deletions are remembered at least, of the latest: more
// than there are answers to writes under way.
const maxEnds = 10_000

// write is an object as the server answered or, if assumed, as the write must
// have changed it: the answer to a binding is not the object, and only shows
// that its resource version is later.
type write struct {
	obj     client.Object
	assumed bool
	gone    bool
	at      time.Time
}

// end identifies the last state of a deleted object.
type end struct {
	uid     types.UID
	version string
}

// NewRecent returns an empty overlay of the cache of one side.
func NewRecent() *Recent {
	return &Recent{
		written: map[kinds.ObjectKey]write{},
		ends:    Expiring[kinds.ObjectKey, end]{Lifetime: lifetime, Most: maxEnds},
	}
}

// Put records the server's answer to a write.
func (r *Recent) Put(kind string, obj client.Object) {
	r.remember(kind, write{obj: obj})
}

// Assume records the expected result of a write. The object still has the
// resource version from before.
func (r *Recent) Assume(kind string, obj client.Object) {
	r.remember(kind, write{obj: obj, assumed: true})
}

// Remove records that an object was deleted for good, whatever the cache still
// holds.
func (r *Recent) Remove(kind string, obj client.Object) {
	r.remember(kind, write{obj: obj, assumed: true, gone: true})
}

func (r *Recent) remember(kind string, w write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.at = time.Now()
	r.lockedSweep(w.at)
	k := kinds.ObjectKey{Kind: kind, Key: client.ObjectKeyFromObject(w.obj)}
	if e, ok := r.ends.Get(k, w.at); ok && e.after(w.obj) {
		return
	}
	r.written[k] = w
}

// after reports whether the object was deleted after this state of it.
func (e end) after(obj client.Object) bool {
	return e.uid == obj.GetUID() && !newerVersion(obj.GetResourceVersion(), e.version)
}

// Sweep deletes outdated entries. Without it, those of an idle tenant would
// stay for ever.
func (r *Recent) Sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lockedSweep(time.Now())
}

// lockedSweep deletes outdated entries, once in a lifetime.
func (r *Recent) lockedSweep(now time.Time) {
	if now.Sub(r.swept) < lifetime {
		return
	}
	r.swept = now
	maps.DeleteFunc(r.written, func(_ kinds.ObjectKey, w write) bool { return w.outdated(now) })
	r.ends.Sweep(now)
}

func (w write) outdated(now time.Time) bool { return now.Sub(w.at) > lifetime }

// Latest returns the newer of the cached object, which may be nil, and the
// written one. It deletes a write that the cache has caught up with, because
// its event may have come before the answer.
func (r *Recent) Latest(kind string, key client.ObjectKey, cached client.Object) client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := kinds.ObjectKey{Kind: kind, Key: key}
	w, ok := r.written[k]
	switch {
	case !ok:
		return cached
	case w.outdated(time.Now()), cached != nil && w.reached(cached):
		delete(r.written, k)
		return cached
	case w.gone:
		return nil
	}
	return w.obj
}

// Seen deletes a write when an event arrives that is at least as new. It
// reports whether the event is of that very write, and so is known to the
// writer already.
func (r *Recent) Seen(kind string, obj client.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := kinds.ObjectKey{Kind: kind, Key: client.ObjectKeyFromObject(obj)}
	w, ok := r.written[k]
	if !ok || !w.reached(obj) {
		return false
	}
	delete(r.written, k)
	return !w.assumed && !newer(obj, w.obj)
}

// Ended records that an object was deleted, and deletes its writes.
func (r *Recent) Ended(kind string, obj client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.lockedSweep(now)
	k := kinds.ObjectKey{Kind: kind, Key: client.ObjectKeyFromObject(obj)}
	if w, ok := r.written[k]; ok && w.obj.GetUID() == obj.GetUID() {
		delete(r.written, k)
	}
	r.ends.Put(k, end{obj.GetUID(), obj.GetResourceVersion()}, now)
}

// reached reports whether an object is at least as new as the write.
func (w write) reached(obj client.Object) bool {
	if w.gone && len(obj.GetFinalizers()) == 0 {
		// An object that is deleted for good may change once more before it is
		// gone: only another object of its name counts.
		return obj.GetUID() != w.obj.GetUID()
	}
	return newer(obj, w.obj) || (!w.assumed && !newer(w.obj, obj))
}

// newer reports whether a was written after b. Resource versions are comparable
// (KEP-5504); if they are not, a counts as newer, so that the cache wins.
func newer(a, b client.Object) bool {
	return newerVersion(a.GetResourceVersion(), b.GetResourceVersion())
}

func newerVersion(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

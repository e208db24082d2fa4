package caches

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Recent holds what was written to one side and has not come back through its cache yet, so that a reconcile reads its own
// writes and repeats none. An entry lives from the answer to a write until its event arrives; one that was overtaken by its
// event goes when it is read again, or after a while.
//
// The answer to a write can also come after the event of the object's end; so ends are remembered as long.
type Recent struct {
	mu      sync.Mutex
	written map[kinds.ObjectKey]write
	ends    map[kinds.ObjectKey]end
	swept   time.Time
}

// lifetime is how long a write can stay ahead of its event. A cache that lags longer has been cut off, and will be filled anew.
const lifetime = time.Minute

// write is an object as the server answered or, if assumed, as it must have become: the answer to a binding is no object, and
// its resource version is not known but for being later.
type write struct {
	obj     client.Object
	assumed bool
	gone    bool
	at      time.Time
}

// end is the last that the cache has seen of an object.
type end struct {
	last client.Object // its metadata, as far as they are looked at
	at   time.Time
}

// NewRecent makes an empty overlay of the cache of one side.
func NewRecent() *Recent {
	return &Recent{written: map[kinds.ObjectKey]write{}, ends: map[kinds.ObjectKey]end{}}
}

// Put remembers the server's answer to a write.
func (r *Recent) Put(kind string, obj client.Object) {
	r.remember(kind, write{obj: obj})
}

// Assume remembers what a write made of an object that still carries its old resource version.
func (r *Recent) Assume(kind string, obj client.Object) {
	r.remember(kind, write{obj: obj, assumed: true})
}

// Remove remembers that an object was deleted for good: what the cache still shows of it is nothing to act on.
func (r *Recent) Remove(kind string, obj client.Object) {
	r.remember(kind, write{obj: obj, assumed: true, gone: true})
}

func (r *Recent) remember(kind string, w write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.at = time.Now()
	r.lockedSweep(w.at)
	k := kinds.ObjectKey{Kind: kind, Key: client.ObjectKeyFromObject(w.obj)}
	if e, ok := r.ends[k]; ok && e.after(w.obj) {
		return
	}
	r.written[k] = w
}

// after says whether an object had ended when this state of it came to be.
func (e end) after(obj client.Object) bool {
	return e.last.GetUID() == obj.GetUID() && !newer(obj, e.last)
}

// Sweep drops what is out of date. A tenant that writes nothing more would hold it for ever.
func (r *Recent) Sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lockedSweep(time.Now())
}

// lockedSweep drops what is out of date, once in a lifetime.
func (r *Recent) lockedSweep(now time.Time) {
	if now.Sub(r.swept) < lifetime {
		return
	}
	r.swept = now
	maps.DeleteFunc(r.written, func(_ kinds.ObjectKey, w write) bool { return w.outdated(now) })
	maps.DeleteFunc(r.ends, func(_ kinds.ObjectKey, e end) bool { return now.Sub(e.at) > lifetime })
}

func (w write) outdated(now time.Time) bool { return now.Sub(w.at) > lifetime }

// Latest is the newer of what the cache holds, which may be nil, and what was written. The event of a write may come before the
// answer; what the cache has got past is dropped here.
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

// Seen drops what was written once an event that is as new has arrived. It says whether the event is of that very write: then it
// tells nothing that the writer did not know.
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

// Ended drops what was written to this very object, which the cache has seen go, and what is still to be answered.
func (r *Recent) Ended(kind string, obj client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.lockedSweep(now)
	k := kinds.ObjectKey{Kind: kind, Key: client.ObjectKeyFromObject(obj)}
	if w, ok := r.written[k]; ok && w.obj.GetUID() == obj.GetUID() {
		delete(r.written, k)
	}
	last := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}}
	r.ends[k] = end{last: last, at: now}
}

// reached says whether an object is at least as new as the write.
func (w write) reached(obj client.Object) bool {
	if w.gone && len(obj.GetFinalizers()) == 0 {
		// What is deleted for good may change once more on its way out: only another object of its name counts.
		return obj.GetUID() != w.obj.GetUID()
	}
	return newer(obj, w.obj) || (!w.assumed && !newer(w.obj, obj))
}

// newer says whether a was written after b (KEP-5504: resource versions can be compared). What cannot be compared counts as
// newer, so that the cache wins.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || order > 0
}

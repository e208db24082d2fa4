package syncup

import (
	"encoding/json"
	"hash/fnv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// reasonReverted is the reason of the event on a copy of an object of the super
// cluster that the tenant has changed.
const reasonReverted = "ChangeReverted"

// reverted is the text of that event.
const reverted = "this object belongs to the super cluster, so the change is reverted; ask a platform admin to make it there"

// lastShown remembers what a tenant was shown of nodes and classes when its
// copies were last up to date. It tells a change that the tenant has made from
// one of the super cluster. The zero value is ready.
type lastShown struct {
	mu    sync.Mutex
	shown map[kinds.ObjectKey]uint64
}

// put remembers what is shown of an object.
func (l *lastShown) put(key kinds.ObjectKey, digest uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown == nil {
		l.shown = map[kinds.ObjectKey]uint64{}
	}
	l.shown[key] = digest
}

// forget drops an object that the tenant does not have any more.
func (l *lastShown) forget(key kinds.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.shown, key)
}

// is reports whether this is what was shown.
func (l *lastShown) is(key kinds.ObjectKey, digest uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return digest != 0 && l.shown[key] == digest
}

// digestOf tells one state of an object from another; 0 if it cannot be
// encoded.
func digestOf(obj client.Object) uint64 {
	data, err := json.Marshal(obj)
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	return h.Sum64()
}

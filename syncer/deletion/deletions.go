// Package deletion distinguishes objects that a tenant has deleted from objects
// that only seem to be missing.
package deletion

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is how long an observed deletion is remembered. A copy whose
// deletion takes longer has to be confirmed.
const remembered = 10 * time.Minute

// Deletions are the UIDs of objects whose deletion was observed. The zero value
// is ready to use.
type Deletions struct {
	mu    sync.Mutex
	seen  map[types.UID]time.Time
	swept time.Time
}

// Add records that the deletion of an object was observed.
func (d *Deletions) Add(uid types.UID, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = map[types.UID]time.Time{}
	}
	if now.Sub(d.swept) > remembered {
		d.swept = now
		maps.DeleteFunc(d.seen, func(_ types.UID, at time.Time) bool { return now.Sub(at) > remembered })
	}
	d.seen[uid] = now
}

// Has reports whether the deletion of an object was observed.
func (d *Deletions) Has(uid types.UID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.seen[uid]
	return ok && now.Sub(at) <= remembered
}

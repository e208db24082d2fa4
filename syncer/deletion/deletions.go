// Package deletion tells what a tenant has deleted from what only seems to be missing.
package deletion

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is how long a deletion that was seen is known. One that takes longer to carry is asked about.
const remembered = 10 * time.Minute

// Deletions are the UIDs of objects whose deletion was seen. The zero value is ready.
type Deletions struct {
	mu    sync.Mutex
	seen  map[types.UID]time.Time
	swept time.Time
}

// Add notes that an object's deletion was seen.
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

// Has says whether an object's deletion was seen.
func (d *Deletions) Has(uid types.UID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.seen[uid]
	return ok && now.Sub(at) <= remembered
}

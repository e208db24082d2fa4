// Package deletion distinguishes objects that a tenant has deleted from objects
// that only seem to be missing.
package deletion

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
)

const (
	// remembered is how long an observed deletion is remembered. A copy whose
	// deletion takes longer has to be confirmed.
	remembered = 10 * time.Minute
	// maxRemembered is how many deletions of a tenant are remembered at least,
	// of the latest. An apiserver can claim any number; those that are
	// forgotten have to be confirmed.
	maxRemembered = 20_000
)

// Deletions are the UIDs of objects whose deletion was observed.
type Deletions struct {
	mu   sync.Mutex
	seen caches.Expiring[types.UID, struct{}]
}

// NewDeletions returns deletions before any observation.
func NewDeletions() *Deletions {
	return &Deletions{seen: caches.Expiring[types.UID, struct{}]{Lifetime: remembered, Most: maxRemembered}}
}

// Add records that the deletion of an object was observed.
func (d *Deletions) Add(uid types.UID, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.Put(uid, struct{}{}, now)
}

// Has reports whether the deletion of an object was observed.
func (d *Deletions) Has(uid types.UID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.seen.Get(uid, now)
	return ok
}

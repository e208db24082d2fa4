package views

import "sync"

// digests caches the digests of a tenant's copies by kind and namespace, until
// one of these copies changes. The zero value is ready to use.
type digests struct {
	mu sync.Mutex
	// known holds digests by kind and namespace.
	known map[digestKey]any
	// changes counts the changes of copies.
	changes uint64
}

type digestKey struct{ kind, namespace string }

// get returns a digest, and computes it if it is not cached. If a copy has
// changed meanwhile, it does not cache the digest.
func (d *digests) get(key digestKey, compute func() any) any {
	d.mu.Lock()
	known, ok := d.known[key]
	changes := d.changes
	d.mu.Unlock()
	if ok {
		return known
	}
	digest := compute()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changes == changes {
		if d.known == nil {
			d.known = map[digestKey]any{}
		}
		d.known[key] = digest
	}
	return digest
}

// forget deletes a digest because a copy has changed.
func (d *digests) forget(key digestKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	delete(d.known, key)
}

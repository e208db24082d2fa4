package views

import (
	"context"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/session"
)

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

// digestsIn returns a function that returns the digest of the tenant's copies
// of a kind in one of its namespaces; nil for a kind without digests.
func (s *Viewer) digestsIn(ctx context.Context, namespace string) func(kind string) any {
	return func(name string) any {
		k := s.Builtin[name]
		if k == nil || k.Down == nil || k.Down.Digest == nil {
			return nil
		}
		return s.digests.get(digestKey{name, namespace}, func() any {
			var copies []client.Object
			// Reading a synced cache does not fail; if it did, the next event
			// of a copy, or the patrol, would compute the digest again.
			_ = s.CacheOf(k).EachBy(ctx, k, toolscache.NamespaceIndex, s.Identity().SuperNamespace(namespace), func(obj client.Object) {
				if session.IsCopy(obj) {
					copies = append(copies, obj)
				}
			})
			return k.Down.Digest(copies)
		})
	}
}

// Forget deletes the digest of a kind in a namespace of the tenant because a
// copy has changed.
func (s *Viewer) Forget(kind, namespace string) { s.digests.forget(digestKey{kind, namespace}) }

package views

import (
	"context"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// digests hold what other kinds need to know of a tenant's copies of a kind in a namespace, until one of these copies changes. The
// zero value is ready.
type digests struct {
	mu sync.Mutex
	// known holds digests by kind and namespace.
	known map[digestKey]any
	// changes counts the changes of copies.
	changes uint64
}

type digestKey struct{ kind, namespace string }

// get returns a digest, and computes it if it is not known. If a copy has changed meanwhile, the digest is not kept.
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

// forget drops a digest, because a copy has changed.
func (d *digests) forget(key digestKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	delete(d.known, key)
}

// digestsIn returns a function that finds the digest of the tenant's copies of a kind in the super cluster's namespace of one of the
// tenant's; nil for a kind without.
func (s *Viewer) digestsIn(ctx context.Context, namespace string) func(kind string) any {
	return func(name string) any {
		k := s.Builtin[name]
		if k == nil || k.Down == nil || k.Down.Digest == nil {
			return nil
		}
		return s.digests.get(digestKey{name, namespace}, func() any {
			var copies []client.Object
			// Reading a cache that has synced does not fail; were it to, the next event of a copy, or the patrol, would do it again.
			_ = s.CacheOf(k).EachBy(ctx, k, toolscache.NamespaceIndex, s.Identity().SuperNamespace(namespace), func(obj client.Object) {
				if session.IsCopy(obj) {
					copies = append(copies, obj)
				}
			})
			return k.Down.Digest(copies)
		})
	}
}

// Forget drops the digest of a kind in a namespace of the tenant, because a copy has changed.
func (s *Viewer) Forget(kind, namespace string) { s.digests.forget(digestKey{kind, namespace}) }

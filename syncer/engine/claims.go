package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// evict deletes a copy and clears the status of the tenant's object.
func (s *session) evict(ctx context.Context, k *kinds.Kind, o objects, why error) error {
	if err := s.showStatus(ctx, k, o.tenant, k.Fresh()); err != nil {
		return err
	}
	if stand(o.super) == present {
		if err := s.remove(ctx, k, o); err != nil {
			return err
		}
	}
	return why
}

// copyIn finds the tenant's copy of a name in the super cluster's namespace of one of the tenant's.
func (s *session) copyIn(ctx context.Context, namespace string) func(kind, name string) client.Object {
	return func(kind, name string) client.Object {
		k := s.builtin[kind]
		if k == nil {
			return nil
		}
		found, err := s.superObject(ctx, k, s.identity().SuperKey(client.ObjectKey{Namespace: namespace, Name: name}))
		if err != nil || found == nil || translate.OriginOf(found).Cluster != s.identity().Key {
			return nil
		}
		return found
	}
}

// rivals finds the super cluster's objects that have a claim and are in none of the tenant's namespaces.
func (s *session) rivals(ctx context.Context) func(kind, claim string) []client.Object {
	return func(name, claim string) []client.Object {
		k := s.builtin[name]
		if k == nil {
			return nil
		}
		var keys []client.ObjectKey
		// Reading a cache that has synced does not fail; were it to, the patrol would find the difference.
		_ = s.cacheOf(k).EachKeyBy(ctx, k, caches.IndexClaims, claim, func(key client.ObjectKey) { keys = append(keys, key) })
		var found []client.Object
		for _, key := range keys {
			if s.ownsNamespace(ctx, key.Namespace) {
				continue
			}
			if obj, err := s.cacheOf(k).Get(ctx, k, key); err == nil && obj != nil {
				found = append(found, obj)
			}
		}
		return found
	}
}

// ownsNamespace reports whether a namespace of the super cluster is known to be the tenant's.
func (s *session) ownsNamespace(ctx context.Context, name string) bool {
	ns, err := s.superNamespace(ctx, name)
	return err == nil && ns != nil && ns.Annotations[names.VCUID] == string(s.identity().UID)
}

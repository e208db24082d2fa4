package engine

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// copiesIn finds the tenant's copies of a kind in the super cluster's namespace of one of the tenant's.
func (s *session) copiesIn(ctx context.Context, namespace string) func(kind string) []client.Object {
	return func(name string) []client.Object {
		k := s.builtin[name]
		if k == nil {
			return nil
		}
		var found []client.Object
		// Reading a cache that has synced does not fail; were it to, the next event of a copy, or the patrol, would look again.
		_ = k.cache.eachBy(ctx, k, toolscache.NamespaceIndex, s.identity().SuperNamespace(namespace), func(obj client.Object) {
			if isCopy(obj) {
				found = append(found, obj)
			}
		})
		return found
	}
}

// affect looks again at the objects whose copies depend on a copy that has come, changed or gone.
func (s *session) affect(k *kind, copied client.Object) {
	if !s.begun.Load() {
		return // all is looked at when the tenant begins
	}
	for _, name := range k.down.affects {
		to := s.kind(name)
		if to == nil {
			continue
		}
		_ = s.cache.eachKeyBy(s.ctx, to, toolscache.NamespaceIndex, translate.OriginOf(copied).Namespace, func(key client.ObjectKey) {
			s.enqueue(s.request(to, key), priorityNormal)
		})
	}
}

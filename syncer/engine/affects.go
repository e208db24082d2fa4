package engine

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// affect enqueues the objects whose copies depend on a copy that has come, changed or gone.
func (s *session) affect(k *kinds.Kind, copied client.Object) {
	namespace := translate.OriginOf(copied).Namespace
	s.digests.forget(digestKey{k.Name, namespace})
	if !s.begun.Load() {
		return // everything is reconciled when the tenant begins
	}
	for _, name := range k.Down.Affects {
		to := s.kind(name)
		if to == nil {
			continue
		}
		_ = s.cache.EachKeyBy(s.ctx, to, toolscache.NamespaceIndex, namespace, func(key client.ObjectKey) {
			s.enqueue(s.request(to, key), queue.PriorityNormal)
		})
	}
}

package engine

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// reserve rejects a new or changed copy that would exceed a limit of the tenant, as [limits.Usage] does.
func (s *session) reserve(k *kinds.Kind, copied, was client.Object) (release func(), err error) {
	return s.usage.Reserve(s.lane(), k, copied, was, s.identity().Policy.Limits, s.limits)
}

// freed enqueues an object that waits for room, after a copy of its kind has gone.
func (s *session) freed(k *kinds.Kind) {
	if key, ok := s.held.Any(k.Name); ok {
		s.enqueue(s.request(k, key), queue.PriorityNormal)
	}
}

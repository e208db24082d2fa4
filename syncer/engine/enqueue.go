package engine

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// request is the request for an object of the tenant.
func (s *session) request(k *kinds.Kind, key client.ObjectKey) queue.Request {
	return queue.Request{Cluster: multicluster.ClusterName(s.lane()), Kind: k.Name, Key: key}
}

func (e *Engine) enqueue(r queue.Request, priority int) {
	e.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority)}, r)
}

func (s *session) enqueueLater(r queue.Request, after time.Duration) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(queue.PriorityLow), After: after}, r)
}

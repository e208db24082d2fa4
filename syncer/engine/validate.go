package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// validate does a write to the super cluster if the validators allow it, and if it is its turn.
func (s *engagement) validate(ctx context.Context, obj, was client.Object, write func(context.Context) error) error {
	if !s.engine.validation.Watches(obj) {
		return write(ctx)
	}
	if !s.turn.Take() {
		return queue.ErrNotItsTurn
	}
	defer s.turn.Give()
	t := s.Identity()
	who := plugins.Tenant{Key: t.Key, Name: t.Name, Namespace: t.Namespace, UID: t.UID}
	return s.engine.validation.Write(ctx, who, obj, was, write)
}

// retry retries a tenant's denied objects, because something has changed that
// may admit them.
func (e *Engine) retry(tenant string) {
	if s := e.session(multicluster.ClusterName(tenant)); s != nil {
		s.retries.Add(1)
		s.EnqueuePending(isDenied, queue.PriorityNormal)
	}
}

// isDenied reports whether validators or limits reject an object.
func isDenied(e pending.Entry) bool { return e.Denied }

// serves reports whether a tenant is engaged.
func (e *Engine) serves(tenant string) bool {
	return e.session(multicluster.ClusterName(tenant)) != nil
}

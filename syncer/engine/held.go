package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
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

// retry has a tenant's held objects tried again, because something has changed that they may wait for.
func (e *Engine) retry(tenant string) {
	if s := e.session(multicluster.ClusterName(tenant)); s != nil {
		s.retries.Add(1)
		s.EnqueueParked(s.Denials.All(), queue.PriorityNormal)
	}
}

// serves says whether a tenant is engaged.
func (e *Engine) serves(tenant string) bool {
	return e.session(multicluster.ClusterName(tenant)) != nil
}

// hold leaves an object as it is until it may go down, and tells the tenant why if that is news. Retries is how often the tenant's
// held objects had been tried again when the object was asked about: if that has changed, it was not among them.
func (s *engagement) hold(ctx context.Context, k *kinds.Kind, key client.ObjectKey, why *plugins.RejectionError, retries int64) error {
	told := s.Denials.Put(k.Name, key)
	if s.retries.Load() != retries {
		s.Enqueue(s.Request(k, key), queue.PriorityNormal)
	}
	if told == why.Message {
		return nil
	}
	if err := s.down.ShowHeld(ctx, k, key, why); err != nil {
		return err
	}
	if err := s.report(ctx, k, key, why.Reason, why); err != nil {
		return err
	}
	s.Denials.Note(k.Name, key, why.Message)
	return nil
}

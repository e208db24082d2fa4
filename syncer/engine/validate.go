package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// validator validates the writes of one tenant, one at a time.
type validator struct {
	*session.Tenant

	gate *validation.Gate
	turn *queue.Turn
}

// write writes to the super cluster if the validators allow it and no other
// object of the tenant is being validated.
func (s *validator) write(ctx context.Context, obj, was client.Object, write func(context.Context) error) error {
	if !s.gate.Watches(obj) {
		return write(ctx)
	}
	if !s.turn.Take() {
		return queue.ErrNotItsTurn
	}
	defer s.turn.Give()
	t := s.Identity()
	who := plugins.Tenant{Key: t.Key, Name: t.Name, Namespace: t.Namespace, UID: t.UID}
	return s.gate.Write(ctx, who, obj, was, write)
}

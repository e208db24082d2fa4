package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
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
	return s.gate.Write(ctx, pluginTenant(s.Identity()), obj, was, write)
}

// pluginTenant returns a tenant as plugins see it.
func pluginTenant(t translate.Tenant) plugins.Tenant {
	return plugins.Tenant{Key: t.Key, Name: t.Name, Namespace: t.Namespace, UID: t.UID}
}

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

// reservedKey marks the context of writes in a turn that Reserve has taken.
type reservedKey struct{}

// Reserve implements guard.Validator.
func (s *validator) Reserve(ctx context.Context, obj client.Object) (reserved context.Context, release func(), err error) {
	if !s.gate.Watches(obj) {
		return ctx, func() {}, nil
	}
	if !s.turn.Take() {
		return ctx, nil, queue.ErrNotItsTurn
	}
	return context.WithValue(ctx, reservedKey{}, true), s.turn.Give, nil
}

// Write implements guard.Validator. It writes to the super cluster if the validators
// allow it and no other object of the tenant is being validated.
func (s *validator) Write(ctx context.Context, obj, was client.Object, write func(context.Context) error) error {
	if ctx.Value(reservedKey{}) == nil {
		reserved, release, err := s.Reserve(ctx, obj)
		if err != nil {
			return err
		}
		defer release()
		ctx = reserved
	}
	return s.gate.Write(ctx, pluginTenant(s.Identity()), obj, was, write)
}

// pluginTenant returns a tenant as plugins see it.
func pluginTenant(t translate.Tenant) plugins.Tenant {
	return plugins.Tenant{Key: t.Key, Name: t.Name, Namespace: t.Namespace, UID: t.UID}
}

package syncdown

import (
	"cmp"
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// creator creates copies with all that they need.
type creator struct {
	contents   *contents
	translator *translator
	networks   networkTable
	references *references
	writer     *writer
	guard      *guard.Guard
	requests   waker
	own        creatorOwn
}

// waker enqueues the objects that wait for others.
type waker interface {
	// Wake enqueues the objects that may wait for a new object.
	Wake(ctx context.Context, k *kinds.Kind, obj client.Object)
}

// creatorOwn syncs the objects that the syncer has of its own.
type creatorOwn interface {
	ownSyncer
	networkEnsurer
}

// networkEnsurer ensures the objects that keep networks apart.
type networkEnsurer interface {
	// EnsureNetwork ensures that these objects exist for a network in a namespace
	// of the tenant.
	EnsureNetwork(ctx context.Context, namespace, network string) error
}

// create creates the copy. Contents that no cache holds are read once it need not
// wait for the validation of others, or they would be read again after that.
func (s *creator) create(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if !k.ByMetadata() {
		return s.createCopy(ctx, k, o)
	}
	ctx, release, err := s.guard.Reserve(ctx, k)
	if err != nil {
		return err
	}
	defer release()
	if o.Tenant, err = s.contents.ofTenant(ctx, k, o); err != nil || o.Tenant == nil {
		return err
	}
	return s.createCopy(ctx, k, o)
}

// createCopy creates the copy of an object with its contents, after all that it
// needs.
func (s *creator) createCopy(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if err := s.translator.admit(ctx, k, o); err != nil {
		return err
	}
	release, err := useNetwork(s.networks, k, o)
	if err != nil {
		return err
	}
	defer release()
	missing, err := s.references.ensure(ctx, k, o.Tenant)
	if err != nil {
		return err
	}
	if missing != "" {
		return &pending.BlockedError{On: missing}
	}
	if err := ensureNetwork(ctx, s.networks, s.own, k, o); err != nil {
		return err
	}
	desired, err := s.translator.desired(ctx, k, o)
	if err != nil {
		return err
	}
	if err := attachNetwork(s.networks, k, o, desired); err != nil {
		return pending.Reject(err)
	}
	created, err := s.writer.create(ctx, k, o, desired)
	if err != nil {
		return err
	}
	if created && k.ByMetadata() {
		o.Super = desired
		s.contents.agree(k, o)
	}
	if !k.Down.OnDemand {
		s.requests.Wake(ctx, k, o.Tenant)
	}
	return cmp.Or(s.own.Sync(ctx, k, o), s.translator.omitted(ctx, k, o))
}

// restore updates the copy of an object that exists and is not in the cache.
func (s *creator) restore(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	desired, err := s.translator.desired(ctx, k, o)
	if err != nil {
		return err
	}
	return s.writer.takeOver(ctx, k, o, desired)
}

package syncdown

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// errStale is why contents are read again: an apiserver answered with an older state of an object than its watch has shown.
var errStale = errors.New("the tenant's apiserver answers with an older state than it has shown")

// tenantContents returns the tenant's object with its contents; nil if the object in the cache was replaced, whose event leads
// here again.
func (s *Syncer) tenantContents(ctx context.Context, k *kinds.Kind, o session.Objects) (client.Object, error) {
	if !k.ByMetadata() || o.Tenant == nil {
		return o.Tenant, nil
	}
	found := k.Fresh()
	if err := s.Client.Get(ctx, o.Key, found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	switch {
	case client.ObjectKeyFromObject(found) != o.Key:
		return nil, fmt.Errorf("read %s %s: the tenant's apiserver answers with another object", k.Name, o.Key)
	case found.GetUID() != o.Tenant.GetUID():
		return nil, nil
	case !stateOf(found).covers(o.Tenant):
		return nil, fmt.Errorf("read %s %s: %w", k.Name, o.Key, errStale)
	}
	found.SetManagedFields(nil)
	return found, nil
}

// contents returns both sides with their contents, and reports whether both are still what the caches show.
func (s *Syncer) contents(ctx context.Context, k *kinds.Kind, o session.Objects) (session.Objects, bool, error) {
	tenant, err := s.tenantContents(ctx, k, o)
	if err != nil || tenant == nil {
		return o, false, err
	}
	super, err := s.LiveCopy(ctx, k, o.SuperKey)
	if err != nil || super == nil || super.GetUID() != o.Super.GetUID() {
		return o, false, err
	}
	super.SetManagedFields(nil)
	o.Tenant, o.Super = tenant, super
	return o, true, nil
}

// updateBoth brings both sides to what they should be.
func (s *Syncer) updateBoth(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if k.ByMetadata() {
		return s.updateContents(ctx, k, o)
	}
	_, err := s.update(ctx, k, o)
	return err
}

// updateContents brings both sides to what they should be, as update does, for a kind whose contents no cache holds. Where they have been
// compared in these versions, nothing is read.
func (s *Syncer) updateContents(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	if s.agreements.stand(k, o) == compared {
		return nil
	}
	o, there, err := s.contents(ctx, k, o)
	if err != nil || !there {
		return err
	}
	if o, err = s.update(ctx, k, o); err == nil && o.Tenant != nil {
		s.agreements.note(k, o)
	}
	return err
}

// createdCopy records a new copy as the super cluster returned it.
func (s *Syncer) createdCopy(k *kinds.Kind, o session.Objects, super client.Object) {
	s.SuperRecent.Put(k.Name, k.CachedSuper(super))
	if k.ByMetadata() {
		o.Super = super
		s.agreements.note(k, o)
	}
}

// changedUnseen reports whether one of two sides whose contents no cache holds has changed since they were compared. Those that have not
// been compared are enqueued.
func (s *Syncer) changedUnseen(k *kinds.Kind, o session.Objects) bool {
	switch s.agreements.stand(k, o) {
	case changed:
		return true
	case unknown:
		if !s.Pending.Has(k.Name, o.Key) {
			s.Enqueue(s.Request(k, o.Key), queue.PriorityLow)
		}
	case compared:
	}
	return false
}

package engine

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// errStale is why contents are read again: an apiserver answered with an older state of an object than its watch has shown.
var errStale = errors.New("the tenant's apiserver answers with an older state than it has shown")

// tenantContents returns the tenant's object with its contents; nil if the object in the cache was replaced, whose event leads
// here again.
func (s *downSyncer) tenantContents(ctx context.Context, k *kinds.Kind, o objects) (client.Object, error) {
	if !k.ByMetadata() || o.tenant == nil {
		return o.tenant, nil
	}
	found := k.Fresh()
	if err := s.client.Get(ctx, o.key, found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	switch {
	case client.ObjectKeyFromObject(found) != o.key:
		return nil, fmt.Errorf("read %s %s: the tenant's apiserver answers with another object", k.Name, o.key)
	case found.GetUID() != o.tenant.GetUID():
		return nil, nil
	case !stateOf(found).covers(o.tenant):
		return nil, fmt.Errorf("read %s %s: %w", k.Name, o.key, errStale)
	}
	found.SetManagedFields(nil)
	return found, nil
}

// contents returns both sides with their contents, and reports whether both are still what the caches show.
func (s *downSyncer) contents(ctx context.Context, k *kinds.Kind, o objects) (objects, bool, error) {
	tenant, err := s.tenantContents(ctx, k, o)
	if err != nil || tenant == nil {
		return o, false, err
	}
	super, err := s.liveCopy(ctx, k, o.superKey)
	if err != nil || super == nil || super.GetUID() != o.super.GetUID() {
		return o, false, err
	}
	super.SetManagedFields(nil)
	o.tenant, o.super = tenant, super
	return o, true, nil
}

// updateBoth brings both sides to what they should be.
func (s *downSyncer) updateBoth(ctx context.Context, k *kinds.Kind, o objects) error {
	if k.ByMetadata() {
		return s.updateContents(ctx, k, o)
	}
	_, err := s.update(ctx, k, o)
	return err
}

// updateContents brings both sides to what they should be, as update does, for a kind whose contents no cache holds. Where they have been
// compared in these versions, nothing is read.
func (s *downSyncer) updateContents(ctx context.Context, k *kinds.Kind, o objects) error {
	if s.agreements.stand(k, o) == compared {
		return nil
	}
	o, there, err := s.contents(ctx, k, o)
	if err != nil || !there {
		return err
	}
	if o, err = s.update(ctx, k, o); err == nil && o.tenant != nil {
		s.agreements.note(k, o)
	}
	return err
}

// createdCopy records a new copy as the super cluster returned it.
func (s *downSyncer) createdCopy(k *kinds.Kind, o objects, super client.Object) {
	s.superRecent.Put(k.Name, k.CachedSuper(super))
	if k.ByMetadata() {
		o.super = super
		s.agreements.note(k, o)
	}
}

// changedUnseen reports whether one of two sides whose contents no cache holds has changed since they were compared. Those that have not
// been compared are enqueued.
func (s *downSyncer) changedUnseen(k *kinds.Kind, o objects) bool {
	switch s.agreements.stand(k, o) {
	case changed:
		return true
	case unknown:
		if !s.refusals.Has(k.Name, o.key) && !s.held.Has(k.Name, o.key) {
			s.enqueue(s.request(k, o.key), queue.PriorityLow)
		}
	case compared:
	}
	return false
}

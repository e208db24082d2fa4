package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// errStale is why contents are read again: an apiserver answered with an older state of an object than its watch has shown.
var errStale = errors.New("the tenant's apiserver answers with an older state than it has shown")

// tenantContents returns the tenant's object with its contents; nil if the object in the cache was replaced, whose event leads
// here again.
func (s *session) tenantContents(ctx context.Context, k *kinds.Kind, o objects) (client.Object, error) {
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
func (s *session) contents(ctx context.Context, k *kinds.Kind, o objects) (objects, bool, error) {
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
func (s *session) updateBoth(ctx context.Context, k *kinds.Kind, o objects) error {
	if k.ByMetadata() {
		return s.updateContents(ctx, k, o)
	}
	_, err := s.update(ctx, k, o)
	return err
}

// updateContents brings both sides to what they should be, as update does, for a kind whose contents no cache holds. Where they have been
// compared in these versions, nothing is read.
func (s *session) updateContents(ctx context.Context, k *kinds.Kind, o objects) error {
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
func (s *session) createdCopy(k *kinds.Kind, o objects, super client.Object) {
	s.superRecent.Put(k.Name, k.CachedSuper(super))
	if k.ByMetadata() {
		o.super = super
		s.agreements.note(k, o)
	}
}

// changedUnseen reports whether one of two sides whose contents no cache holds has changed since they were compared. Those that have not
// been compared are enqueued.
func (s *session) changedUnseen(k *kinds.Kind, o objects) bool {
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

// agreements are the objects whose two sides have been compared and agreed, of kinds whose contents no cache holds, each with the versions
// that were compared.
type agreements struct {
	mu    sync.Mutex
	noted map[kinds.ObjectKey]agreement
}

// agreement is what was compared: the states of both sides, and the tenant's identity.
type agreement struct {
	identity      *translate.Tenant
	tenant, super state
}

// comparison is the result of comparing an object with its agreement.
type comparison int

const (
	// unknown: the contents have not been compared.
	unknown comparison = iota
	// compared: they have, and nothing has changed since.
	compared
	// changed: a side has changed since.
	changed
)

// stand compares both sides of an object with their agreement.
func (a *agreements) stand(k *kinds.Kind, o objects) comparison {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, ok := a.noted[kinds.ObjectKey{Kind: k.Name, Key: o.key}]
	switch {
	case !ok || was.identity != o.identity:
		return unknown
	case was.tenant.covers(o.tenant) && was.super.covers(o.super):
		return compared
	}
	return changed
}

// note notes that both sides agree.
func (a *agreements) note(k *kinds.Kind, o objects) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.noted == nil {
		a.noted = map[kinds.ObjectKey]agreement{}
	}
	a.noted[kinds.ObjectKey{Kind: k.Name, Key: o.key}] = agreement{o.identity, stateOf(o.tenant), stateOf(o.super)}
}

// forget drops the agreement of an object that no longer has two sides.
func (a *agreements) forget(k *kinds.Kind, key client.ObjectKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.noted, kinds.ObjectKey{Kind: k.Name, Key: key})
}

// state identifies a version of an object.
type state struct {
	uid             types.UID
	resourceVersion string
}

func stateOf(obj client.Object) state { return state{obj.GetUID(), obj.GetResourceVersion()} }

// covers reports whether an object is in this state or an earlier one. An answer may be newer than what the watch has shown; were only
// equal states to count, an apiserver that answers with a new state each time would have its object read and written without end.
func (s state) covers(obj client.Object) bool {
	if obj.GetUID() != s.uid {
		return false
	}
	if obj.GetResourceVersion() == s.resourceVersion {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), s.resourceVersion)
	return err == nil && order <= 0
}

package syncdown

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// contents reads the objects of kinds of which the caches have only metadata,
// and remembers in which versions both sides agreed.
type contents struct {
	*session.TenantObjects
	*session.SuperObjects

	agreements
}

// errStale is why contents are read again: an apiserver answered with an older
// version of an object than its watch has shown.
var errStale = errors.New("the tenant's apiserver answers with an older state than it has shown")

// ofTenant returns the tenant's object with its contents; nil if the object in
// the cache was replaced, whose event leads to another reconcile.
func (s *contents) ofTenant(ctx context.Context, k *kinds.Kind, o session.Objects) (client.Object, error) {
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

// ofBoth returns both sides with their contents, and reports whether both are
// still the objects that the caches have. The copy is read first: what a tenant's
// apiserver answers is the larger cost, and of no use without a copy.
func (s *contents) ofBoth(ctx context.Context, k *kinds.Kind, o session.Objects) (session.Objects, bool, error) {
	super, err := s.LiveCopy(ctx, k, o.SuperKey)
	if err != nil || super == nil || super.GetUID() != o.Super.GetUID() {
		return o, false, err
	}
	tenant, err := s.ofTenant(ctx, k, o)
	if err != nil || tenant == nil {
		return o, false, err
	}
	super.SetManagedFields(nil)
	o.Tenant, o.Super = tenant, super
	return o, true, nil
}

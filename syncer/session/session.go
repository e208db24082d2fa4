// Package session holds the state of one tenant while it is engaged, for the
// packages that sync its objects: who the tenant is, which kinds are synced,
// the objects of both sides, and the requests in the queue.
package session

import (
	"context"
	"sync/atomic"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Session is one tenant while it is engaged. Its parts are for those who need
// no more of it.
type Session struct {
	*SuperCluster
	*Tenant
	*Kinds
	*TenantObjects
	*SuperObjects
	*Keys
	*References
	*Requests

	Ctx   context.Context // ends with the tenant's engagement
	Begun atomic.Bool     // both sides are known
	Guard *guard.Guard

	// Pending are the objects that are not synced for now.
	Pending *pending.Objects
	// Locks prevent that two workers reconcile an object at the same time: one
	// from the queue, the other because a second object refers to it.
	Locks caches.KeyLocks
}

// New returns the session of a tenant that is engaged until ctx ends. It calls
// rejected for every write that the guard rejects.
func New(ctx context.Context, super *SuperCluster, c TenantCluster, objects *pending.Objects, rejected func()) *Session {
	s := Assemble(ctx, super, c.Tenant(), &TenantObjects{
		Cluster: c, Client: c.GetClient(), Cache: caches.NewReader(c.GetCache()), TenantRecent: caches.NewRecent(),
	})
	s.Pending = objects
	for _, k := range super.Builtin {
		if c.Serves(k.GVK) {
			s.AddKind(k)
		}
	}
	s.Guard = &guard.Guard{
		UID:        s.Identity().UID,
		Client:     super.API.GetClient(),
		Namespace:  s.SuperNamespace,
		Namespaced: super.API.GetClient().IsObjectNamespaced,
		Rejected:   rejected,
	}
	return s
}

// Assemble returns a session that syncs no kind, keeps no pending objects and
// cannot write to the super cluster, as tests need it.
func Assemble(ctx context.Context, super *SuperCluster, t translate.Tenant, objects *TenantObjects) *Session {
	tenant, synced := NewTenant(t), &Kinds{}
	references := NewReferences(tenant, synced, objects)
	return &Session{
		SuperCluster:  super,
		Tenant:        tenant,
		Kinds:         synced,
		TenantObjects: objects,
		SuperObjects:  NewSuperObjects(super),
		Keys:          NewKeys(super, tenant, synced),
		References:    references,
		Requests:      NewRequests(super, tenant, synced, objects, references),
		Ctx:           ctx,
	}
}

// EnqueuePending enqueues the pending objects that f selects before their time.
func (s *Session) EnqueuePending(f func(pending.Entry) bool, priority int) {
	for _, o := range s.Pending.Select(f) {
		if k := s.Kind(o.Kind); k != nil {
			s.Enqueue(s.Request(k, o.Key), priority)
		}
	}
}

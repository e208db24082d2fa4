// Package syncdown syncs the objects that a tenant declares: their spec down to
// copies in the super cluster, and the status of the copies up.
package syncdown

import (
	"cmp"
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/limits"
	"github.com/virtualcluster/virtualcluster/syncer/own"
	"github.com/virtualcluster/virtualcluster/syncer/patch"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/tokens"
)

// Syncer syncs the objects of one tenant that the tenant declares. It observes
// both sides of an object, decides, and acts; its parts do the work.
type Syncer struct {
	locks    *caches.KeyLocks
	requests *session.Requests
	observer *observer
	contents *contents
	creator  *creator
	updater  *updater
	deleter  *deleter
	status   *statusSyncer
	comparer *comparer
	tokens   *tokens.Issuer
	pending  *pending.Objects
}

// Options are what a syncer needs beside the session.
type Options struct {
	// Nodes ensures the virtual nodes that objects are bound to.
	Nodes nodeEnsurer
	// Removals reports which copies may be deleted.
	Removals removalGate
	// Tokens and Own are the tenant's.
	Tokens *tokens.Issuer
	Own    *own.Syncer
	// Networks are those of the tenant; nil if no kind has networks.
	Networks networkTable
	// Usage counts the copies of all tenants. Limits bound it unless the policy
	// of the tenant does.
	Usage  *limits.Usage
	Limits limits.Limits
}

// removalGate distinguishes what a tenant has deleted from what only seems to be
// missing.
type removalGate interface {
	deletionGate
	forcedDeletions
}

// NewSyncer returns the syncer of the objects that a tenant declares.
func NewSyncer(s *session.Session, view viewer, opts Options) *Syncer {
	d := &Syncer{locks: &s.Locks, requests: s.Requests, tokens: opts.Tokens, pending: s.Pending}
	grace := &gracePeriods{s.Tenant, opts.Removals}
	quota := &quota{s.Tenant, opts.Usage, opts.Limits}
	translator := &translator{s.Tenant, view, patch.Compile(s.Identity().Sync.Patches), opts.Networks}
	references := &references{s.Tenant, s.Kinds, s.SuperObjects, s.Requests, opts.Own, d}
	patcher := &patcher{s.SuperObjects, s.Guard, view, references}
	writer := &writer{s.Tenant, s.SuperObjects, s.Guard, quota, references, opts.Tokens, patcher}

	d.observer = &observer{s.Tenant, s.TenantObjects, s.SuperObjects, s.References, grace, view}
	d.contents = &contents{TenantObjects: s.TenantObjects, SuperObjects: s.SuperObjects}
	d.status = &statusSyncer{s.Tenant, s.TenantObjects, view, opts.Nodes}
	d.creator = &creator{d.contents, translator, opts.Networks, references, writer, s.Guard, s.Requests, opts.Own}
	d.deleter = &deleter{s.TenantObjects, s.SuperObjects, s.Guard, opts.Removals, grace, d.status, opts.Tokens, d.creator}
	d.updater = &updater{d.contents, translator, writer, d.status, d.deleter, opts.Tokens, opts.Own}
	d.comparer = &comparer{translator, patcher, d.status, opts.Tokens, opts.Own}
	return d
}

// Sync reconciles one object of a kind that is synced down.
func (s *Syncer) Sync(ctx context.Context, k *kinds.Kind, key client.ObjectKey) error {
	defer s.locks.Lock(k.Name, key)()
	o, observed, err := s.observer.observe(ctx, k, key)
	if err != nil {
		return err
	}
	return s.act(ctx, k, o, observed)
}

// act does what is decided about an object.
func (s *Syncer) act(ctx context.Context, k *kinds.Kind, o session.Objects, observed observation) error {
	do := decide(observed)
	if k.ByMetadata() && do != update {
		s.contents.forget(k, o.Key)
	}
	switch do {
	case create:
		return s.creator.create(ctx, k, o)
	case update:
		return s.updater.update(ctx, k, o)
	case deleteSuper:
		return s.deleter.deleteSuper(ctx, k, o, observed)
	case deleteTenant:
		return s.deleter.deleteTenant(ctx, k, o)
	case finalizeTenant:
		return s.deleter.finalizeTenant(ctx, k, o)
	case conflict:
		return pending.Reject(guard.ErrForeign)
	case nothing:
		return cmp.Or(s.tokens.Drop(ctx, k, o), awaitDeletion(o, observed))
	}
	return nil
}

// awaitDeletion returns an error for an object whose copy can be created when
// the previous one has been deleted.
func awaitDeletion(o session.Objects, observed observation) error {
	if observed.tenant != session.Present || !observed.wanted || observed.foreign || observed.super != session.Deleting {
		return nil
	}
	return &pending.WaitingError{
		On: "the deletion of the previous copy in the super cluster", Until: o.Super.GetDeletionTimestamp().Time,
	}
}

// Differs reports whether a reconcile of an object would write anything.
func (s *Syncer) Differs(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (bool, error) {
	o, observed, err := s.observer.observe(ctx, k, key)
	if err != nil {
		return false, err
	}
	switch decide(observed) {
	case nothing:
		left, err := s.tokens.Left(ctx, k, o)
		return left != nil, err
	case update:
		if k.ByMetadata() {
			return s.contentsDiffer(k, o), nil
		}
		return s.comparer.differs(ctx, k, o)
	case create, deleteSuper, deleteTenant, finalizeTenant, conflict:
	}
	return true, nil
}

// contentsDiffer reports whether an object of which the caches have only
// metadata has changed since its contents were compared. One whose contents
// have not been compared is enqueued, unless it is pending.
func (s *Syncer) contentsDiffer(k *kinds.Kind, o session.Objects) bool {
	switch s.contents.compare(k, o) {
	case changed:
		return true
	case unknown:
		if !s.pending.Has(k.Name, o.Key) {
			s.requests.Enqueue(s.requests.Request(k, o.Key), queue.PriorityLow)
		}
	case compared:
	}
	return false
}

// ShowDenial writes into the status of a tenant's object why it has no copy.
func (s *Syncer) ShowDenial(ctx context.Context, k *kinds.Kind, key client.ObjectKey, why *plugins.RejectionError) error {
	if k.Down == nil || k.Down.Pending == nil {
		return nil
	}
	o, err := s.observer.read(ctx, k, key)
	if err != nil || o.Tenant == nil || o.Super != nil {
		return err
	}
	return s.status.showDenial(ctx, k, o.Tenant, why)
}

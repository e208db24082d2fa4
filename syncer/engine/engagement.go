package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/deletion"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/own"
	"github.com/virtualcluster/virtualcluster/syncer/pace"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/syncdown"
	"github.com/virtualcluster/virtualcluster/syncer/syncup"
	"github.com/virtualcluster/virtualcluster/syncer/tokens"
	"github.com/virtualcluster/virtualcluster/syncer/views"
)

// engagement is one engaged tenant: its session, and what syncs its objects.
type engagement struct {
	*session.Session
	engine *Engine
	view   *views.Viewer
	up     *syncup.Syncer
	down   *syncdown.Syncer
	tokens *tokens.Issuer
	own    *own.Syncer
	doubts *deletion.Doubts

	// turn is whose copy validators are asked about.
	turn *queue.Turn
	// retries is how often what is held was tried again because something had changed.
	retries atomic.Int64
	// settling keeps two settles from undoing each other.
	settling sync.Mutex
	// beat is the patrol's.
	beat beat
	// pace tells whether the tenant's apiserver answers slowly.
	pace *pace.Pace
}

// newEngagement begins the engagement of a tenant, until ctx ends.
func newEngagement(ctx context.Context, e *Engine, c session.TenantCluster) *engagement {
	counts := session.PendingCounts{Rejected: e.metrics.countRefused, Denied: e.metrics.countHeld, Blocked: e.metrics.countBlocked}
	return engage(e, session.New(ctx, e.SuperCluster, c, counts, e.metrics.refusedWrites.Inc))
}

// engage puts what syncs the objects of a tenant around its session.
func engage(e *Engine, s *session.Session) *engagement {
	view := views.NewViewer(s)
	g := &engagement{
		Session: s, engine: e, view: view, tokens: tokens.NewIssuer(s), own: own.NewSyncer(s, view), doubts: deletion.NewDoubts(s),
		turn: queue.NewTurn(func(r queue.Request) { e.Enqueue(r, queue.PriorityHigh) }),
	}
	g.up = syncup.NewSyncer(s, view, func(k *kinds.Kind) error {
		_, err := g.WatchTenant(k)
		return err
	})
	g.down = syncdown.NewSyncer(s, view, syncdown.Options{
		Nodes: g.up, Tokens: g.tokens, Own: g.own, Removals: g.doubts, Usage: e.usage, Limits: e.limits,
	})
	g.pace = pace.New(&e.usual, func(slow bool) { e.setSlow(g, slow) })
	if e.validation != nil {
		s.Guard.Validate = g.validate
	}
	return g
}

// settle takes over what is known of the tenant now. Nothing of it is handed out before both sides are known, or while its
// apiserver does not answer.
func (s *engagement) settle() {
	s.settling.Lock()
	defer s.settling.Unlock()
	t := s.Cluster.Tenant()
	s.SetIdentity(t)
	s.Queue.SetWeight(t.Key, t.Weight)
	if s.Begun.Load() && s.Cluster.Healthy() {
		s.Queue.Resume(t.Key)
	} else {
		s.Queue.Pause(t.Key)
	}
}

// conclude says when an object is looked at again, and tells the tenant if it was not taken.
func (s *engagement) conclude(
	ctx context.Context, k *kinds.Kind, key client.ObjectKey, err error, retries int64,
) (reconcile.Result, error) {
	if why, ok := errors.AsType[*pending.BlockedError](err); ok {
		s.Rejections.Clear(k.Name, key)
		s.Denials.Clear(k.Name, key)
		return s.block(ctx, k, key, why)
	}
	s.Blocks.Clear(k.Name, key)
	if why, ok := errors.AsType[*plugins.RejectionError](err); ok {
		s.Rejections.Clear(k.Name, key)
		return reconcile.Result{}, s.hold(ctx, k, key, why, retries)
	}
	s.Denials.Clear(k.Name, key)
	var why pending.RejectionError
	if !errors.As(err, &why) {
		s.Rejections.Clear(k.Name, key)
		return reconcile.Result{}, err
	}
	after := s.Rejections.Next(k.Name, key)
	if err := s.report(ctx, k, key, pending.ReasonRejected, why); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// block notes that an object waits for another one, and tells the tenant when that lasts.
func (s *engagement) block(
	ctx context.Context, k *kinds.Kind, key client.ObjectKey, why *pending.BlockedError,
) (reconcile.Result, error) {
	now := time.Now()
	block := s.Blocks.Put(k.Name, key, why.On, now)
	if left := pending.BlockedAfter - now.Sub(block.Since); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if block.Told {
		return reconcile.Result{}, nil
	}
	if err := s.report(ctx, k, key, pending.ReasonBlocked, why); err != nil {
		return reconcile.Result{}, err
	}
	block.Told = true
	s.Blocks.Note(k.Name, key, block)
	return reconcile.Result{}, nil
}

// sync carries one object.
func (s *engagement) sync(ctx context.Context, k *kinds.Kind, key client.ObjectKey) error {
	if k.Up != nil {
		return s.up.Sync(ctx, k, key)
	}
	return s.down.Sync(ctx, k, key)
}

// report tells the tenant why an object is not synced.
func (s *engagement) report(ctx context.Context, k *kinds.Kind, key client.ObjectKey, reason string, why error) error {
	obj, err := s.TenantObject(ctx, k, key)
	if err != nil || obj == nil {
		return err
	}
	return s.Report(ctx, obj, reason, s.Identity().Text(why.Error(), key.Namespace))
}

package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// retries is how often denied objects were retried because something had
	// changed.
	retries atomic.Int64
	// settling keeps two settles from undoing each other.
	settling sync.Mutex
	// beat is the patrol's.
	beat beat
	// latencies are those of new objects.
	latencies latencies
	// pace tells whether the tenant's apiserver answers slowly.
	pace *pace.Pace
}

// newEngagement begins the engagement of a tenant, until ctx ends.
func newEngagement(ctx context.Context, e *Engine, c session.TenantCluster) *engagement {
	objects := pending.NewObjects(e.metrics.countPending)
	return engage(e, session.New(ctx, e.SuperCluster, c, objects, e.metrics.rejectedWrites.Inc))
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

// sync reconciles one object.
func (s *engagement) sync(ctx context.Context, k *kinds.Kind, key client.ObjectKey) error {
	if k.Up != nil {
		return s.up.Sync(ctx, k, key)
	}
	return s.down.Sync(ctx, k, key)
}

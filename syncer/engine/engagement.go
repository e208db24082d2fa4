package engine

import (
	"context"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/custom"
	"github.com/virtualcluster/virtualcluster/syncer/deletion"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/networks"
	"github.com/virtualcluster/virtualcluster/syncer/own"
	"github.com/virtualcluster/virtualcluster/syncer/pace"
	"github.com/virtualcluster/virtualcluster/syncer/patrol"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/sharedcrds"
	"github.com/virtualcluster/virtualcluster/syncer/syncdown"
	"github.com/virtualcluster/virtualcluster/syncer/syncup"
	"github.com/virtualcluster/virtualcluster/syncer/tokens"
	"github.com/virtualcluster/virtualcluster/syncer/views"
)

// engagement is one engaged tenant: its session, and what syncs its objects.
type engagement struct {
	*session.Session

	shared    *shared
	up        *syncup.Syncer
	down      *syncdown.Syncer
	events    *tenantEvents
	opener    *opener
	outcomes  *outcomes
	patrolled *patrol.Tenant
	latencies *latencies
	networks  *networks.Table // nil without networks
	owned     *own.Syncer
	// turn is that of the object whose copy is being validated.
	turn *queue.Turn
	// pace is that of the tenant's apiserver.
	pace *pace.Pace
	// settling prevents that two calls of settle undo each other.
	settling sync.Mutex
}

// newEngagement returns the engagement of a tenant until ctx ends. It calls
// setSlow when the tenant's apiserver becomes slow, or fast again.
func newEngagement(ctx context.Context, all *shared, c session.TenantCluster, setSlow func(*engagement, bool)) *engagement {
	objects := pending.NewObjects(all.metrics.countPending)
	return engage(all, session.New(ctx, all.SuperCluster, c, objects, all.metrics.rejectedWrites.Inc), setSlow)
}

// engage composes what syncs the objects of a session.
func engage(all *shared, s *session.Session, setSlow func(*engagement, bool)) *engagement {
	view := views.NewViewer(s)
	doubts := deletion.NewDoubts(s)
	tokens := tokens.NewIssuer(s)
	g := &engagement{
		Session: s, shared: all, latencies: &latencies{},
		turn: queue.NewTurn(func(r queue.Request) { s.Enqueue(r, queue.PriorityHigh) }),
	}
	g.events = &tenantEvents{Session: s, digests: view, witness: doubts, latencies: g.latencies}
	g.opener = &opener{s, all, g.events}
	g.up = syncup.NewSyncer(s, view, func(k *kinds.Kind) error {
		_, err := g.events.watch(k)
		return err
	})
	options := syncdown.Options{
		Nodes: g.up, Tokens: tokens, Removals: doubts, Usage: all.usage, Limits: all.limits,
	}
	if all.networks != nil {
		g.networks = networks.NewTable(all.networks.Name())
		options.Networks, view.Network = g.networks, g.networks.Network
		g.owned = own.NewSyncer(s, view, g.networks.Specs())
	} else {
		g.owned = own.NewSyncer(s, view, nil)
	}
	options.Own = g.owned
	g.down = syncdown.NewSyncer(s, view, options)
	g.outcomes = &outcomes{Session: s, denials: g.down, turn: g.turn}
	g.patrolled = patrol.NewTenant(s, g.up, g.down, tokens, all.metrics.patrol)
	g.pace = pace.New(&all.usual, func(slow bool) { setSlow(g, slow) })
	if all.validation != nil {
		s.Guard.Validator = &validator{s.Tenant, all.validation, g.turn}
	}
	return g
}

// settle takes over what is known of the tenant now. The queue of the tenant is
// paused before both sides are known, and while its apiserver does not answer.
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

// run watches the tenant, hands out its requests once both sides are known, and
// ends with the engagement.
func (s *engagement) run(name multicluster.ClusterName) {
	logger := log.Log.WithName("syncer").WithValues("tenant", name)
	if err := s.opener.begin(); err != nil {
		if s.Ctx.Err() == nil {
			logger.Error(err, "The tenant cannot be watched; it is engaged again when its VirtualCluster changes")
		}
		return
	}
	s.Begun.Store(true)
	s.settle()
	s.Cluster.Synced()
	logger.Info("Syncing the tenant's objects")
	var running sync.WaitGroup
	if secrets := s.Builtin["Secret"]; secrets != nil { // a syncer without Secrets cannot record copies
		crds := sharedcrds.NewSyncer(s.shared.crds, sharedcrds.Tenant{
			Tenant: s.Identity(), Cluster: s.Cluster, Guard: s.Guard, Secrets: secrets, Report: s.Report,
		})
		running.Go(func() { crds.Run(s.Ctx) })
		if s.networks != nil {
			running.Go(func() { newNetworkSyncer(s, secrets).Run(s.Ctx) })
		}
	}
	for _, r := range s.Identity().Sync.CustomResources {
		running.Go(func() { custom.NewSyncer(s.shared.custom, s.Cluster, s, r).Run(s.Ctx) })
	}
	running.Wait()
	<-s.Ctx.Done()
}

// WatchTenant watches the tenant's objects of a kind, whose events lead to
// requests.
func (s *engagement) WatchTenant(k *kinds.Kind) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.events.watch(k)
}

// SyncKind adds a kind to those that are synced, or replaces the one of its
// name, and enqueues its objects on both sides.
func (s *engagement) SyncKind(k *kinds.Kind) error {
	s.AddKind(k)
	err := s.Cache.EachKey(s.Ctx, k, func(key client.ObjectKey) { s.Enqueue(s.Request(k, key), queue.PriorityLow) })
	if err != nil {
		return fmt.Errorf("list the tenant's %s objects: %w", k.Name, err)
	}
	return enqueueCopies(s.Session, k)
}

// sync reconciles one object.
func (s *engagement) sync(ctx context.Context, k *kinds.Kind, key client.ObjectKey) error {
	if k.Up != nil {
		return s.up.Sync(ctx, k, key)
	}
	return s.down.Sync(ctx, k, key)
}

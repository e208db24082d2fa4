// Package engine carries objects between tenants and the super cluster: one level-triggered reconcile for every kind, which
// reads both sides from caches, decides, and acts. What is particular to a kind is in its [Kind].
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// TenantCluster is the cluster of a tenant as a provider engages it.
type TenantCluster interface {
	cluster.Cluster
	// Tenant is who it is, as the VirtualCluster says now. After a change, the cluster is engaged again.
	Tenant() translate.Tenant
	// Healthy says whether the tenant's apiserver answers. After a change, the cluster is engaged again.
	Healthy() bool
	// Verify makes sure that the apiserver still serves the cluster that was engaged, by asking it.
	Verify(ctx context.Context) error
	// Synced is called once, when the caches are full and the tenant's objects are being carried.
	Synced()
}

// Options are the limits of an engine.
type Options struct {
	// Workers is how many objects are worked on at a time, of all tenants together.
	Workers int
	// Timeout is how long the work on one object may take.
	Timeout time.Duration
	// NodeLinger is how long a node is still shown to a tenant after its last object there went: the next may come soon.
	NodeLinger time.Duration
	// Queue are the limits for each tenant.
	Queue fairqueue.Options
	// Registerer is where the metrics go.
	Registerer prometheus.Registerer
}

// Engine is the syncer's heart. Make one with [New]; it runs with its manager, and tenants are engaged by a provider.
type Engine struct {
	super      cluster.Cluster
	kinds      map[string]*kind
	queue      *fairqueue.Queue[Request]
	nodeLinger time.Duration

	refusedWrites prometheus.Counter

	mu       sync.RWMutex
	sessions map[multicluster.ClusterName]*session
}

// New makes an engine for kinds and adds it to the manager, whose own cluster is the super cluster.
func New(ctx context.Context, mgr mcmanager.Manager, kinds []Kind, opts Options) (*Engine, error) {
	e := &Engine{
		super:      mgr.GetLocalManager(),
		kinds:      map[string]*kind{},
		queue:      fairqueue.New(Request.Lane, opts.Queue),
		nodeLinger: opts.NodeLinger,
		sessions:   map[multicluster.ClusterName]*session{},
		refusedWrites: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vc_syncer_refused_writes_total",
			Help: "Writes into namespaces of the super cluster that did not belong to the tenant.",
		}),
	}
	if err := e.addKinds(kinds); err != nil {
		return nil, err
	}
	if err := opts.Registerer.Register(e.refusedWrites); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	if err := e.watchSuper(ctx); err != nil {
		return nil, err
	}
	if err := e.addController(mgr, opts); err != nil {
		return nil, err
	}
	return e, mgr.Add(e)
}

// addKinds takes kinds, each once. Every object is in a namespace and may be on a node, so these two have to be among them.
func (e *Engine) addKinds(kinds []Kind) error {
	for _, k := range kinds {
		spec := k.spec()
		if e.kinds[spec.name] != nil {
			return fmt.Errorf("kind %s is given twice", spec.name)
		}
		e.kinds[spec.name] = spec
	}
	if k := e.kinds[namespaceKind]; k == nil || k.down == nil {
		return fmt.Errorf("kind %s, flowing down, is missing", namespaceKind)
	}
	if k := e.kinds[nodeKind]; k == nil || k.up == nil {
		return fmt.Errorf("kind %s, flowing up, is missing", nodeKind)
	}
	return nil
}

// addController adds the controller whose workers take requests from the fair queue.
func (e *Engine) addController(mgr mcmanager.Manager, opts Options) error {
	c, err := controller.NewTypedUnmanaged[Request]("syncer", controller.TypedOptions[Request]{
		Reconciler:              e,
		MaxConcurrentReconciles: opts.Workers,
		ReconciliationTimeout:   opts.Timeout,
		SkipNameValidation:      new(true), // several syncers may run in one process
		Logger:                  mgr.GetLogger().WithName("syncer"),
		LogConstructor: func(r *Request) logr.Logger {
			if r == nil {
				return mgr.GetLogger().WithName("syncer")
			}
			return mgr.GetLogger().WithName("syncer").WithValues("tenant", r.Cluster, "kind", r.Kind, "object", r.Key)
		},
		NewQueue: func(string, workqueue.TypedRateLimiter[Request]) workqueue.TypedRateLimitingInterface[Request] {
			return e.queue
		},
	})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	return mgr.GetLocalManager().Add(c)
}

// Start is the engine as a runnable of its manager. Its work is done by the controller and by the sessions.
func (e *Engine) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Engage begins to carry a tenant's objects until ctx ends. It does not wait for the tenant's caches. Engaging the same
// cluster again takes over what changed in its identity.
func (e *Engine) Engage(ctx context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
	tc, ok := c.(TenantCluster)
	if !ok {
		return fmt.Errorf("cluster %s (%T) is not a tenant's", name, c)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sessions[name]
	if s == nil || s.cluster != tc {
		e.queue.Drop(tc.Tenant().Key)
		s = newSession(ctx, e, tc)
		e.sessions[name] = s
		go s.run(name)
	}
	s.settle()
	return nil
}

// disengage forgets a session and what is queued for it.
func (e *Engine) disengage(name multicluster.ClusterName, s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[name] == s {
		delete(e.sessions, name)
		e.queue.Drop(s.lane())
	}
}

// session is the engaged tenant of that cluster key, or nil.
func (e *Engine) session(name multicluster.ClusterName) *session {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.sessions[name]
}

// eachSession calls f with every engaged tenant, outside the lock.
func (e *Engine) eachSession(f func(*session)) {
	e.mu.RLock()
	all := make([]*session, 0, len(e.sessions))
	for _, s := range e.sessions {
		all = append(all, s)
	}
	e.mu.RUnlock()
	for _, s := range all {
		f(s)
	}
}

// Reconcile does what one request asks for. An error is tried again with the key's own backoff.
func (e *Engine) Reconcile(ctx context.Context, req Request) (reconcile.Result, error) {
	s, k := e.session(req.Cluster), e.kinds[req.Kind]
	if s == nil || k == nil {
		return reconcile.Result{}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := s.sync(ctx, k, req.Key)
	if s.ctx.Err() != nil {
		// The tenant went away meanwhile; what is left of it is not ours any more.
		return reconcile.Result{}, nil
	}
	var why refusal
	if !errors.As(err, &why) {
		s.refusals.clear(k.name, req.Key)
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: s.refusals.next(k.name, req.Key)}, s.report(ctx, k, req.Key, why)
}

// sync carries one object.
func (s *session) sync(ctx context.Context, k *kind, key client.ObjectKey) error {
	if k.up != nil {
		return s.syncUp(ctx, k, key)
	}
	return s.syncDown(ctx, k, key)
}

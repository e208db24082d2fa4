// Package engine syncs objects between tenants and the super cluster: one
// level-triggered reconcile for every kind, which reads both sides from caches,
// decides, and acts. Each kind declares its own part as a [kinds.Kind].
package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/custom"
	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/limits"
	"github.com/virtualcluster/virtualcluster/syncer/networks"
	"github.com/virtualcluster/virtualcluster/syncer/patrol"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/sharedcrds"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// Options are the limits of an engine.
type Options struct {
	// Timeout is how long the work on one object may take.
	Timeout time.Duration
	// Custom makes the kind of a custom resource, whose name is the kind's with
	// the group's.
	Custom func(kinds.CustomResource) kinds.Flow
	// Standing are the custom resources that are watched whether a tenant syncs
	// them or not.
	Standing []kinds.StandingResource
	// NodeLinger is how long a node is still shown to a tenant after its last
	// object there went: the next may come soon.
	NodeLinger time.Duration
	// Patrol is how often both sides of everything are compared.
	Patrol time.Duration
	// Changed is notified of changes in the super cluster that a tenant has to see
	// even if it is not engaged because its control plane sleeps; nil if none
	// does.
	Changed func(tenant string, at time.Time, urgent bool)
	// Queue are the limits of workers and tenants.
	Queue fairqueue.Options
	// Networks is the default network of tenants; nil if tenants have no networks.
	Networks *networks.Template
	// Providers are those of networks.
	Providers *networks.Providers
	// Validation asks the validators of plugins before copies are written; nil
	// without validators.
	Validation *validation.Gate
	// Limits are how many copies a tenant may have unless its policy says
	// otherwise.
	Limits limits.Limits
	// Metrics are this engine's own.
	Metrics *Metrics
}

// Engine syncs the objects of all tenants. It runs with its manager, and a
// provider engages the tenants.
type Engine struct {
	*shared
	pendingObjects

	tenants *tenants
	events  *superEvents
	patrol  *patrol.Patrol
}

// New makes an engine for kinds and adds it to the manager, whose own cluster
// is the super cluster.
func New(mgr mcmanager.Manager, flows []kinds.Flow, opts Options) (*Engine, error) {
	opts.Queue.Observe = opts.Metrics.observeWait
	super := &session.SuperCluster{
		API:     mgr.GetLocalManager(),
		Caches:  map[kinds.Source]*caches.Reader{kinds.Copies: caches.NewReader(mgr.GetLocalManager().GetCache())},
		Builtin: map[string]*kinds.Kind{},
		Queue:   fairqueue.New(queue.Request.Lane, opts.Queue),
	}
	all := &shared{
		SuperCluster: super,
		nodeLinger:   opts.NodeLinger,
		timeout:      opts.Timeout,
		interval:     opts.Patrol,
		watching:     make(chan struct{}),
		beginning:    newTurns(beginners),
		networks:     opts.Networks,
		providers:    opts.Providers,
		validation:   opts.Validation,
		limits:       opts.Limits,
		usage:        limits.NewUsage(),
		changed:      opts.Changed,
		metrics:      opts.Metrics,
	}
	e := newEngine(all)
	if e.validation != nil {
		e.validation.Attach(validation.Syncer{Retry: e.retry, Serves: e.serves})
	}
	e.metrics.queue.queue.Store(e.Queue)
	if err := e.addKinds(mgr, flows); err != nil {
		return nil, err
	}
	if err := e.addCustom(mgr, opts); err != nil {
		return nil, err
	}
	if err := addTokens(mgr, e.SuperCluster); err != nil {
		return nil, err
	}
	if err := e.addController(mgr, opts); err != nil {
		return nil, err
	}
	return e, mgr.Add(e)
}

// newEngine returns an engine that has engaged no tenant.
func newEngine(all *shared) *Engine {
	engaged := newTenants()
	return &Engine{
		shared:         all,
		pendingObjects: pendingObjects{engaged},
		tenants:        engaged,
		events:         &superEvents{all, engaged},
		patrol:         patrol.New(engaged, all.interval, all.metrics.patrol),
	}
}

// addKinds takes kinds, each once, if the super cluster serves them. Every
// object is in a namespace and may be on a node, so these two have to be among
// them.
func (e *Engine) addKinds(mgr mcmanager.Manager, flows []kinds.Flow) error {
	for _, k := range flows {
		spec := k.Erase()
		if e.Builtin[spec.Name] != nil {
			return fmt.Errorf("kind %s is given twice", spec.Name)
		}
		var err error
		if spec.GVK, err = apiutil.GVKForObject(spec.Object, e.API.GetScheme()); err != nil {
			return fmt.Errorf("kind %s: %w", spec.Name, err)
		}
		switch _, err := e.API.GetRESTMapper().RESTMapping(spec.GVK.GroupKind(), spec.GVK.Version); {
		case meta.IsNoMatchError(err):
			mgr.GetLogger().Info("The super cluster does not serve a kind, so it is not synced", "kind", spec.GVK.String())
			continue
		case err != nil:
			return fmt.Errorf("asking the super cluster for kind %s: %w", spec.Name, err)
		}
		spec.Resource = kinds.ResourceName(spec.GVK, false)
		e.Builtin[spec.Name] = spec
	}
	if k := e.Builtin[session.NamespaceKind]; k == nil || k.Down == nil {
		return fmt.Errorf("kind %s, which is synced down, is missing", session.NamespaceKind)
	}
	if k := e.Builtin[session.NodeKind]; k == nil || k.Up == nil {
		return fmt.Errorf("kind %s, which is synced up, is missing", session.NodeKind)
	}
	return nil
}

// addCustom prepares for custom resources and shared CRDs.
func (e *Engine) addCustom(mgr mcmanager.Manager, opts Options) error {
	for _, source := range []kinds.Source{kinds.Everything, kinds.Standing} {
		all, err := custom.NewCache(e.API)
		if err != nil {
			return err
		}
		e.Caches[source] = caches.NewReader(all)
		if err := mgr.GetLocalManager().Add(all); err != nil {
			return err
		}
	}
	var err error
	if e.crds, err = sharedcrds.New(e.API, opts.Patrol); err != nil {
		return err
	}
	e.custom = custom.NewResources(e.API, e.events, custom.Options{
		Build: opts.Custom, Standing: opts.Standing, Stands: e.Standing.AddKind, Lacks: e.crds.Lacks,
		Interval: opts.Patrol, Timeout: opts.Timeout,
	})
	return e.crds.AddTo(mgr.GetLocalManager())
}

// addController adds the controller whose workers take requests from the fair
// queue.
func (e *Engine) addController(mgr mcmanager.Manager, opts Options) error {
	c, err := controller.NewTypedUnmanaged[queue.Request]("syncer", controller.TypedOptions[queue.Request]{
		Reconciler:              e,
		MaxConcurrentReconciles: opts.Queue.Workers + opts.Queue.SlowWorkers,
		ReconciliationTimeout:   opts.Timeout,
		SkipNameValidation:      new(true), // several syncers may run in one process
		Logger:                  mgr.GetLogger().WithName("syncer"),
		LogConstructor: func(r *queue.Request) logr.Logger {
			if r == nil {
				return mgr.GetLogger().WithName("syncer")
			}
			return mgr.GetLogger().WithName("syncer").WithValues("tenant", r.Cluster, "kind", r.Kind, "object", r.Key)
		},
		NewQueue: func(string, workqueue.TypedRateLimiter[queue.Request]) workqueue.TypedRateLimitingInterface[queue.Request] {
			return e.Queue
		},
	})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	return mgr.GetLocalManager().Add(c)
}

// Start is the engine as a runnable of its manager: it watches the super
// cluster, patrols, and summarizes what is pending. Other work is done by the
// controller and by the sessions. It is called when this process is the leader;
// one that is not has no caches.
func (e *Engine) Start(ctx context.Context) error {
	if err := e.events.watchBuiltin(ctx); err != nil {
		return err
	}
	next := e.stand(ctx)
	close(e.watching)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { e.summarize(ctx) })
	running.Go(func() { e.keepStanding(ctx, next) })
	e.patrol.Run(ctx)
	return nil
}

// Engage begins to sync a tenant's objects until ctx ends. It does not wait for
// the tenant's caches. When the same cluster is engaged again, changes of its
// identity take effect.
func (e *Engine) Engage(ctx context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
	tc, ok := c.(session.TenantCluster)
	if !ok {
		return fmt.Errorf("cluster %s (%T) is not a tenant's", name, c)
	}
	return e.tenants.replace(name, func(s *engagement) (*engagement, error) {
		if s == nil || s.Cluster != tc {
			release, ok := tc.Hold()
			if !ok {
				return nil, fmt.Errorf("tenant %s is being disengaged", name)
			}
			e.Queue.Drop(tc.Tenant().Key)
			s = newEngagement(ctx, e.shared, tc, e.setSlow)
			go func() {
				defer release()
				defer e.disengage(name, s)
				s.run(name)
			}()
		}
		s.settle()
		return s, nil
	})
}

// disengage drops an engagement with its requests.
func (e *Engine) disengage(name multicluster.ClusterName, s *engagement) {
	s.Pending.End()
	e.tenants.remove(name, s, func() { e.Queue.Drop(s.Lane()) })
}

// setSlow moves a tenant to the workers of slow tenants or back, unless it was
// engaged again.
func (e *Engine) setSlow(s *engagement, slow bool) {
	e.tenants.ifCurrent(s, func(lane string) { e.Queue.SetSlow(lane, slow) })
}

// retry retries a tenant's denied objects, because something has changed that
// may admit them.
func (e *Engine) retry(tenant string) {
	if s := e.tenants.get(multicluster.ClusterName(tenant)); s != nil {
		s.outcomes.retry()
	}
}

// serves reports whether a tenant is engaged.
func (e *Engine) serves(tenant string) bool {
	return e.tenants.get(multicluster.ClusterName(tenant)) != nil
}

// Reconcile does what one request asks for. An error is retried with the key's
// own backoff.
func (e *Engine) Reconcile(ctx context.Context, req queue.Request) (reconcile.Result, error) {
	s := e.tenants.get(req.Cluster)
	if s == nil {
		return reconcile.Result{}, nil
	}
	defer s.turn.Ended(req)
	k := s.Kind(req.Kind)
	if k == nil {
		return reconcile.Result{}, nil
	}
	release, ok := s.Cluster.Hold()
	if !ok {
		return reconcile.Result{}, nil
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.Ctx, cancel)()
	ctx, sent := requests.Tallied(requests.Timed(ctx, s.pace))
	defer charge(e.Queue, req, sent)
	began, retries := time.Now(), s.outcomes.retries.Load()
	o := s.outcomes.of(s.sync(ctx, k, req.Key))
	if s.Ctx.Err() != nil {
		// The tenant was disengaged meanwhile; what is left of it is not ours.
		return reconcile.Result{}, nil
	}
	e.metrics.observeSync(k.Name, sent, began, o)
	if logger := log.FromContext(ctx).V(1); logger.Enabled() {
		logger.Info("Reconciled", "outcome", o.State, "on", o.On, "sent", directionOf(sent), "cause", o.Err)
	}
	result, err := s.outcomes.conclude(ctx, k, req.Key, o, retries)
	return result, cmp.Or(err, s.latencies.measure(ctx, s.Session, e.metrics, k, req.Key))
}

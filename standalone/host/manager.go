package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/share"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/provisioner"
)

// NewCommand returns the vc-host command.
func NewCommand() *cobra.Command {
	options := DefaultOptions()
	command := component.Command{
		Name:     name,
		Short:    "Runs the control planes of many tenants in one process",
		Options:  &options.Options,
		AddFlags: options.AddFlags,
		Run:      func(ctx context.Context, super *rest.Config) error { return Run(ctx, super, options) },
	}.Cobra()
	// Kubernetes declares one of another type, which cobra cannot use.
	command.Flags().Bool("version", false, "print the version")
	return command
}

const (
	// firstRetry and lastRetry bound the backoff of controllers after errors.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second

	// drainTimeout limits how long a replica that leaves serves control planes that
	// others take over, and drainPoll is the interval of looking at them.
	drainTimeout = 25 * time.Second
	drainPoll    = 200 * time.Millisecond
)

// timing has the control planes of a replica that dies served again within ten
// seconds.
func timing() share.Timing {
	return share.Timing{Duration: 7 * time.Second, Term: 5 * time.Second, RenewEvery: time.Second}
}

// Run runs a host until ctx ends, and then hands over its control planes. Its
// program sets klog.OsExit, so that no control plane ends the process, see
// [hosted.ContainExit].
func Run(ctx context.Context, super *rest.Config, options Options) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	h, err := start(running, super, options)
	if err != nil {
		return err
	}
	h.leaves = func() bool { return ctx.Err() != nil }
	defer h.end()
	defer cancel()
	if err := component.AwaitAPI(ctx, h.manager); err != nil {
		return err
	}
	sharing, stopSharing := context.WithCancel(ctx)
	defer stopSharing()
	managed, shared := make(chan error, 1), make(chan error, 1)
	go func() { managed <- h.manager.Start(running) }() // both are received below
	go func() { shared <- h.replica.Start(sharing) }()
	select {
	case err := <-managed:
		stopSharing()
		return errors.Join(err, <-shared)
	case err := <-shared:
		if err == nil {
			h.drain(running)
		}
		cancel()
		return errors.Join(err, <-managed)
	}
}

// drain returns when other replicas have taken over the control planes of this
// one, if there are any, or after a while.
func (h *host) drain(ctx context.Context) {
	_ = wait.PollUntilContextTimeout(ctx, drainPoll, drainTimeout, true, func(ctx context.Context) (bool, error) {
		if h.stores.handedOver() == 0 {
			return true, nil
		}
		others, err := h.replica.Others(ctx)
		return err == nil && others == 0, nil
	}) // or they end with the process
}

// host is a running vc-host.
type host struct {
	options Options
	manager manager.Manager
	keyring *keyring
	policy  *egress.Policy
	metrics *provisioner.Metrics
	// unregister unregisters the metrics.
	unregister func()
	agentCA    []byte
	router     *hosted.Router
	stores     *stores
	// replica shares the control planes with others, by the division.
	replica   *share.Replica
	division  *division
	handovers *handovers
	moved     *moveMetrics
	// leaves reports whether this replica stops.
	leaves func() bool
	moves  *moves
}

// start makes a host, whose manager is to be started. It ends after ctx, with
// end.
func start(ctx context.Context, super *rest.Config, options Options) (*host, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	h := &host{options: options}
	var err error
	if h.options.Replica == "" {
		if h.options.Replica, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("read the name of this replica: %w", err)
		}
	}
	if h.agentCA, err = options.agentCA(); err != nil {
		return nil, err
	}
	super = component.ClientConfig(super, name)
	if err := h.makeReplica(super); err != nil {
		return nil, err
	}
	if err := h.makeManager(super); err != nil {
		return nil, err
	}
	h.keyring = newKeyring(h.manager.GetClient(), h.manager.GetAPIReader())
	if h.policy, err = options.EgressPolicy(ctx, super, options.AgentAddress, options.Internal, options.Registerer); err != nil {
		return nil, err
	}
	h.router, err = hosted.Listen(ctx, hosted.RouterOptions{
		IP: net.ParseIP(options.Listen), Port: options.Port, PeerPort: options.PeerPort, Keys: h.keyring, Elsewhere: h.elsewhere,
		Names: h.named,
	})
	if err != nil {
		return nil, err
	}
	if err := h.registerMetrics(); err != nil {
		h.router.Stop()
		return nil, err
	}
	if err := h.addControllers(ctx); err != nil {
		h.end()
		return nil, err
	}
	return h, nil
}

// end ends what the manager does not own, after the context of the host.
func (h *host) end() {
	h.moves.wait()
	h.stores.wait()
	h.router.Stop()
	h.unregister()
}

// registerMetrics registers the metrics of control planes, and of this replica.
func (h *host) registerMetrics() (err error) {
	if h.metrics, err = provisioner.NewMetrics(h.options.Registerer, h.router.Sleeping); err != nil {
		return err
	}
	own := newCollector(h.manager.GetCache(), h.options.Replica)
	if err := h.options.Registerer.Register(own); err != nil {
		h.metrics.Unregister()
		return fmt.Errorf("register the metrics of vc-host: %w", err)
	}
	if h.handovers, err = newHandovers(h.options.Registerer); err != nil {
		h.options.Registerer.Unregister(own)
		h.metrics.Unregister()
		return err
	}
	if h.moved, err = newMoveMetrics(h.options.Registerer); err != nil {
		h.options.Registerer.Unregister(h.handovers.seconds)
		h.options.Registerer.Unregister(own)
		h.metrics.Unregister()
		return err
	}
	h.unregister = func() {
		h.moved.unregister(h.options.Registerer)
		h.options.Registerer.Unregister(h.handovers.seconds)
		h.options.Registerer.Unregister(own)
		h.metrics.Unregister()
	}
	return nil
}

// handOverReason returns why control planes are handed over now.
func (h *host) handOverReason() string {
	switch {
	case h.leaves():
		return reasonLeaving
	case h.replica.Ready() != nil:
		return reasonLeaseExpired
	}
	return reasonDivision
}

// makeReplica makes this process one of several that share the control planes.
func (h *host) makeReplica(super *rest.Config) error {
	counted, err := share.NewMetrics(h.options.Registerer, "vc_host")
	if err != nil {
		return err
	}
	h.replica, err = share.New(rest.CopyConfig(super), h.options.ShareNamespace, name, timing(), counted)
	if err != nil {
		return err
	}
	// Without a lease, apiservers serve on: they keep no state.
	h.replica.Continue()
	return nil
}

// guardedClient returns a client whose requests fail when the lease of this
// replica has ended. The cache continues: a replica that has handed over its control
// planes waits until others serve them.
func (h *host) guardedClient(super *rest.Config, options client.Options) (client.Client, error) {
	super = rest.CopyConfig(super)
	h.replica.Guard(super)
	options.HTTPClient = nil
	return client.New(super, options)
}

func (h *host) makeManager(super *rest.Config) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, tenancyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("set up scheme: %w", err)
		}
	}
	options := h.options.Manager(name, scheme)
	options.Cache = cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	options.NewClient = h.guardedClient
	var err error
	if h.manager, err = manager.New(super, options); err != nil {
		return fmt.Errorf("make manager: %w", err)
	}
	// A replica without a valid lease serves clients. Were it not ready, a super
	// cluster that does not respond to any replica would take all of them out of the
	// Service.
	if err := h.manager.AddReadyzCheck("lease", func(*http.Request) error { return h.replica.Joined() }); err != nil {
		return fmt.Errorf("add the check of the lease: %w", err)
	}
	if domain := h.options.Domain; domain != "" {
		watch := domainWatch{domain: domain, lookup: net.DefaultResolver.LookupHost, log: h.options.Logger.WithName("domain")}
		if err := h.manager.Add(watch); err != nil {
			return fmt.Errorf("add the check of the domain: %w", err)
		}
	}
	return h.options.AddReadiness(h.manager, name,
		&tenancyv1alpha1.HostedControlPlane{}, &tenancyv1alpha1.VirtualCluster{}, &tenancyv1alpha1.ControlPlaneStore{})
}

// controllerOptions returns the options of a controller with a number of workers,
// and a limit for each reconcile.
func controllerOptions(workers int, timeout time.Duration) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		ReconciliationTimeout:   timeout,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// addControllers adds the controllers of stores and of control planes.
func (h *host) addControllers(ctx context.Context) error {
	h.stores = &stores{
		start: h.startStore, newPlanes: h.newPlanes, log: h.options.Logger, ctx: ctx, open: map[string]*store{},
		changed: make(chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]),
		lost:    make(chan event.TypedGenericEvent[*tenancyv1alpha1.ControlPlaneStore]),
	}
	h.division, h.moves = newDivision(h.handovers, h.handOverReason), newMoves(ctx, h.moved)
	stores := &storeController{
		Client: h.manager.GetClient(), live: h.manager.GetAPIReader(), namespace: h.options.Namespace, stores: h.stores,
		reports: h.division.keeps, log: h.options.Logger.WithName("stores"),
	}
	planes := &controlPlanes{
		Client: h.manager.GetClient(), live: h.manager.GetAPIReader(), stores: h.stores, division: h.division,
		replica: h.options.Replica, address: h.peerAddress(), platform: h.options.platformNames(h.manager.GetConfig().Host),
		moves: h.moves, log: h.options.Logger.WithName("moves"),
		requests: make(chan event.TypedGenericEvent[*tenancyv1alpha1.HostedControlPlane]),
	}
	h.division.handOver, h.division.again = planes.handOver, planes.requestAll
	h.replica.Serve(func(ctx context.Context, shares share.Shares) error { return h.division.serve(ctx, shares) })
	return errors.Join(planes.setUp(ctx, h.manager), stores.setUp(h.manager))
}

// peerAddress returns where other replicas reach this one.
func (h *host) peerAddress() string {
	ip := cmp.Or(h.options.PodAddress, h.options.Listen)
	return net.JoinHostPort(ip, strconv.Itoa(h.router.PeerPort()))
}

// startStore connects to an etcd.
func (h *host) startStore(ctx context.Context, store string, etcd hosted.RemoteStore) (*hosted.Host, error) {
	address, port, err := splitAddress("advertise-address", h.options.Advertise)
	if err != nil {
		return nil, err
	}
	podPorts, err := hosted.ParsePortRange(h.options.PodPorts)
	if err != nil {
		return nil, err
	}
	return hosted.Start(ctx, hosted.Options{
		Keys: h.keyring, Store: &etcd, Router: h.router,
		Advertise: address, AdvertisePort: port, Internal: h.options.InternalAddress,
		Domain: h.options.Domain, DomainPort: h.options.DomainPort,
		PodAddress: net.ParseIP(h.options.PodAddress), PodPorts: podPorts,
		PrepareShared: h.options.TenantIsolation == string(tenancyv1alpha1.IsolationShared),
		Guard:         h.replica.Guard,
		Metrics:       prometheus.WrapRegistererWith(prometheus.Labels{"store": store}, h.options.Registerer),
		Log:           h.options.Logger.WithName("host").WithValues("store", store),
	})
}

func (h *host) newPlanes(ctx context.Context, in *hosted.Host) *provisioner.Hosted {
	options := h.options.HostedOptions(h.policy, h.agentCA, h.metrics)
	options.ExtraSANs = true
	return provisioner.New(ctx, in, options)
}

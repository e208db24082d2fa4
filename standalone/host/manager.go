package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/egress"

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

// Run runs a host until ctx ends. Its program sets klog.OsExit, so that no control
// plane ends the process, see [hosted.ContainExit].
func Run(ctx context.Context, super *rest.Config, options Options) error {
	ctx, cancel := context.WithCancel(ctx)
	h, err := start(ctx, super, options)
	if err != nil {
		cancel()
		return err
	}
	defer h.end()
	defer cancel()
	if err := component.AwaitAPI(ctx, h.manager); err != nil {
		return err
	}
	return h.manager.Start(ctx)
}

// host is a running vc-host.
type host struct {
	options Options
	manager manager.Manager
	keyring *keyring
	policy  *egress.Policy
	metrics *provisioner.Metrics
	agentCA []byte
	router  *hosted.Router
	stores  *stores
}

// start makes a host, whose manager is to be started. It ends after ctx, with
// end.
func start(ctx context.Context, super *rest.Config, options Options) (*host, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	h := &host{options: options}
	var err error
	if h.agentCA, err = options.agentCA(); err != nil {
		return nil, err
	}
	super = component.ClientConfig(super, name)
	if err := h.makeManager(super); err != nil {
		return nil, err
	}
	h.keyring = newKeyring(h.manager.GetClient(), h.manager.GetAPIReader())
	if h.policy, err = options.EgressPolicy(ctx, super, options.AgentAddress, options.Internal, options.Registerer); err != nil {
		return nil, err
	}
	if h.router, err = hosted.Listen(ctx, net.ParseIP(options.Listen), options.Port, h.keyring); err != nil {
		return nil, err
	}
	if h.metrics, err = provisioner.NewMetrics(options.Registerer, h.router.Sleeping); err != nil {
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
	h.stores.wait()
	h.router.Stop()
	h.metrics.Unregister()
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
	var err error
	if h.manager, err = manager.New(super, options); err != nil {
		return fmt.Errorf("make manager: %w", err)
	}
	return h.options.AddReadiness(h.manager, name,
		&tenancyv1alpha1.HostedControlPlane{}, &tenancyv1alpha1.VirtualCluster{}, &tenancyv1alpha1.ControlPlaneStore{})
}

// addControllers adds the controllers of stores and of control planes.
func (h *host) addControllers(ctx context.Context) error {
	h.stores = &stores{
		start: h.startStore, newPlanes: h.newPlanes, log: h.options.Logger, ctx: ctx, open: map[string]*store{},
		changed: make(chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]),
		lost:    make(chan event.TypedGenericEvent[*tenancyv1alpha1.ControlPlaneStore]),
	}
	replica, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the name of this replica: %w", err)
	}
	all := func(types.NamespacedName) bool { return true }
	stores := &storeController{
		Client: h.manager.GetClient(), live: h.manager.GetAPIReader(), namespace: h.options.Namespace, stores: h.stores, reports: all,
	}
	planes := &controlPlanes{
		Client: h.manager.GetClient(), live: h.manager.GetAPIReader(), stores: h.stores, replica: replica, serves: all,
	}
	return errors.Join(planes.setUp(ctx, h.manager), stores.setUp(h.manager))
}

// startStore connects to an etcd.
func (h *host) startStore(ctx context.Context, store string, etcd hosted.RemoteStore) (*hosted.Host, error) {
	address, port, err := h.options.advertised()
	if err != nil {
		return nil, err
	}
	return hosted.Start(ctx, hosted.Options{
		Keys: h.keyring, Store: &etcd, Router: h.router,
		Advertise: address, AdvertisePort: port, PodAddress: net.ParseIP(h.options.PodAddress),
		PrepareShared: h.options.TenantIsolation == string(tenancyv1alpha1.IsolationShared),
		Metrics:       prometheus.WrapRegistererWith(prometheus.Labels{"store": store}, h.options.Registerer),
		Log:           h.options.Logger.WithName("host").WithValues("store", store),
	})
}

func (h *host) newPlanes(ctx context.Context, in *hosted.Host) *provisioner.Hosted {
	return provisioner.New(ctx, in, h.options.TenantOptions.Options(h.policy, h.agentCA, h.metrics))
}

// Package app composes the syncer: the command vc-syncer, and the syncer for
// programs that embed it.
package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/syncer/engine"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/provider"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
)

// name is the name of the program, in user agents and as its lease.
const name = "vc-syncer"

// replicasNamespace is the default namespace of the leases of replicas that share
// the tenants.
const replicasNamespace = "vc-syncer-replicas"

// pendingPath is the path of the list of pending objects on the metrics port.
const pendingPath = "/debug/pending"

// retryMost is the maximum backoff of an object. It bounds how long after an
// outage all objects are synced.
const retryMost = 15 * time.Second

// New returns the manager of a syncer for the super cluster.
func New(ctx context.Context, super *rest.Config, opts Options) (mcmanager.Manager, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts.logGaps()
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	metrics, err := newInstruments(opts.Registerer)
	if err != nil {
		return nil, err
	}
	clients, err := newClients(component.ClientConfig(super, name), opts, metrics)
	if err != nil {
		return nil, err
	}
	flows, table, err := opts.kinds(scheme)
	if err != nil {
		return nil, err
	}
	tenants := provider.New(scheme, provider.Options{
		ClusterScoped: clusterScoped(table),
		Objects:       kinds.TenantObjects(flows), Prepare: clients.prepare, Memory: opts.TenantMemory.Value(),
		WakeInterval: opts.WakeInterval, Metrics: metrics.provider,
	})
	hook, err := opts.webhook(metrics.stored)
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.New(clients.super, tenants, opts.manager(scheme, flows, hook))
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	if err := tenants.SetupWithManager(mgr.GetLocalManager()); err != nil {
		return nil, fmt.Errorf("set up the provider of tenants: %w", err)
	}
	if err := clients.share(ctx, mgr.GetLocalManager(), tenants); err != nil {
		return nil, err
	}
	if err := addConverted(mgr.GetLocalManager(), hook, tenants.Mine, opts); err != nil {
		return nil, err
	}
	gate, err := addValidation(mgr.GetLocalManager(), table, hook, opts, metrics.gate)
	if err != nil {
		return nil, err
	}
	providers, err := addNetworks(mgr.GetLocalManager(), tenants.Mine, opts, metrics.networks)
	if err != nil {
		return nil, err
	}
	syncing, err := newEngine(mgr, flows, opts, engine.Options{
		Changed: tenants.Changed, Validation: gate, Providers: providers, Metrics: metrics.engine,
	})
	if err != nil {
		return nil, err
	}
	return mgr, errors.Join(servePending(mgr.GetLocalManager(), syncing), clients.addReadiness(mgr.GetLocalManager(), opts, table))
}

// manager returns the options of the manager.
func (o *Options) manager(scheme *runtime.Scheme, flows []kinds.Flow, hook *convertedWebhook) manager.Options {
	options := o.Manager(name, scheme)
	options.Cache, options.NewCache, options.WebhookServer = cacheOptions(flows), newCache, hook.server()
	return options
}

// newEngine makes the engine of a syncer, by its options and by parts of the
// engine's that have been made.
func newEngine(mgr mcmanager.Manager, flows []kinds.Flow, opts Options, with engine.Options) (*engine.Engine, error) {
	var err error
	if with.Networks, err = opts.networks(); err != nil {
		return nil, err
	}
	with.Timeout, with.Patrol, with.NodeLinger = opts.Timeout, opts.Patrol, opts.NodeLinger
	with.Custom, with.Standing = resources.Custom, resources.Standing()
	with.Queue, with.Limits = opts.queue(), effectiveLimits(opts.Limits)
	return engine.New(mgr, flows, with)
}

// servePending serves the list of pending objects on the metrics port, which
// authorizes its clients.
func servePending(mgr manager.Manager, list http.Handler) error {
	if err := mgr.AddMetricsServerExtraHandler(pendingPath, list); err != nil {
		return fmt.Errorf("serve %s: %w", pendingPath, err)
	}
	return nil
}

// Run runs a syncer until ctx is done.
func Run(ctx context.Context, super *rest.Config, opts Options) error {
	mgr, err := New(ctx, super, opts)
	if err != nil {
		return err
	}
	if err := component.AwaitAPI(ctx, mgr.GetLocalManager()); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the built-in kinds: %w", err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register custom resource definitions: %w", err)
	}
	if err := networkv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register networks: %w", err)
	}
	if err := tenancyv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the tenancy kinds: %w", err)
	}
	return scheme, nil
}

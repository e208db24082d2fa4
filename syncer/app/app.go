// Package app puts the syncer together: the command of vc-syncer, and the same thing for programs that run it beside others.
package app

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/engine"
	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/provider"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
)

// New makes a syncer for the super cluster. It runs with the manager that is returned.
func New(ctx context.Context, super *rest.Config, opts Options) (mcmanager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	counter, err := requests.NewCounter(opts.Registerer)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	tenants := provider.New(scheme, counter.Wrap(requests.Tenant))
	mgr, err := mcmanager.New(clientConfig(super, counter), tenants, managerOptions(scheme, opts))
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := tenants.SetupWithManager(mgr.GetLocalManager()); err != nil {
		return nil, fmt.Errorf("setting up the provider of tenants: %w", err)
	}
	_, err = engine.New(ctx, mgr, resources.All(), engine.Options{
		Workers:    opts.Workers,
		Timeout:    opts.Timeout,
		Queue:      fairqueue.Options{Cap: opts.TenantCap},
		Registerer: opts.Registerer,
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("ping", healthz.Ping)
}

// Run runs a syncer until ctx ends.
func Run(ctx context.Context, super *rest.Config, opts Options) error {
	mgr, err := New(ctx, super, opts)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the built-in kinds: %w", err)
	}
	if err := tenancyv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the tenancy kinds: %w", err)
	}
	return scheme, nil
}

// clientConfig lets the syncer send as fast as it works: the fair queue limits it, and the apiserver's priority and fairness.
func clientConfig(super *rest.Config, counter *requests.Counter) *rest.Config {
	cfg := rest.CopyConfig(super)
	cfg.QPS = -1
	cfg.Wrap(counter.Wrap(requests.Super))
	rest.AddUserAgent(cfg, "vc-syncer")
	return cfg
}

func managerOptions(scheme *runtime.Scheme, opts Options) manager.Options {
	return manager.Options{
		Scheme:                  scheme,
		Logger:                  opts.Logger.WithName("vc-syncer"),
		Cache:                   cacheOptions(),
		Metrics:                 metricsserver.Options{BindAddress: opts.MetricsAddress},
		HealthProbeBindAddress:  opts.HealthAddress,
		LeaderElection:          opts.LeaderElect,
		LeaderElectionID:        "vc-syncer",
		LeaderElectionNamespace: opts.LeaderElectNamespace,
		// Another syncer may take over at once: this one stops its workers before it gives up the lease.
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: ptr.To(true)},
	}
}

// cacheOptions has the super cluster's cache hold what belongs to tenants, by our label, and what can be shown to them.
func cacheOptions() cache.Options {
	all := cache.ByObject{Label: labels.Everything()}
	return cache.Options{
		DefaultLabelSelector: labels.NewSelector().Add(ofTenants()),
		DefaultTransform:     cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&tenancyv1alpha1.VirtualCluster{}: all,
			&corev1.Node{}:                    all,
			&corev1.Event{}:                   all,
		},
	}
}

// ofTenants selects the objects that carry the label of a tenant.
func ofTenants() labels.Requirement {
	// An existing key without values is always a valid requirement.
	r, _ := labels.NewRequirement(names.VCName, selection.Exists, nil)
	return *r
}

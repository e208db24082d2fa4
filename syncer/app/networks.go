package app

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/plugins/network/flat"
	"github.com/virtualcluster/virtualcluster/syncer/networks"
)

// addNetworks returns the providers of networks: flat, and those of the program.
// It adds what works for them to the manager. Without networks, it returns nil.
func addNetworks(
	mgr manager.Manager, serves func(types.NamespacedName) bool, opts Options, metrics *networks.Metrics,
) (*networks.Providers, error) {
	logger := mgr.GetLogger().WithName("networks")
	if !opts.Networks {
		if len(opts.NetworkProviders) > 0 {
			logger.Info("The providers of networks are not used without --networks")
		}
		return nil, nil
	}
	providers, err := networks.NewProviders(networks.ProviderOptions{
		Client: mgr.GetClient(), Logger: logger, Registerer: opts.Registerer, Metrics: metrics,
	}, slices.Concat([]network.Registration{flat.Registration()}, opts.NetworkProviders)...)
	if err != nil {
		return nil, err
	}
	failed := []error{
		mgr.Add(&networks.Releaser{
			Providers: providers, Reader: mgr.GetAPIReader(), Client: mgr.GetClient(), Interval: opts.Patrol, Logger: logger,
		}),
		mgr.Add(&networks.Attachments{
			Providers: providers, Cache: mgr.GetCache(), Client: mgr.GetClient(), Serves: serves, Interval: opts.Patrol, Logger: logger,
		}),
	}
	for _, runnable := range providers.Runnables() {
		failed = append(failed, mgr.Add(runnable))
	}
	if err := errors.Join(failed...); err != nil {
		return nil, fmt.Errorf("add the providers of networks: %w", err)
	}
	return providers, nil
}

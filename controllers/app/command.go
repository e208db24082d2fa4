package app

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/virtualcluster/virtualcluster/controllers/addons/dns"
	"github.com/virtualcluster/virtualcluster/controllers/store"
	"github.com/virtualcluster/virtualcluster/internal/component"
)

// NewCommand makes the vc-manager command with the provisioners it is to have,
// and their flags.
func NewCommand(provisioners Provisioners, flags ...func(*pflag.FlagSet)) *cobra.Command {
	return newCommand(func(ctx context.Context, superCluster *rest.Config, options Options) error {
		return Run(ctx, superCluster, options, provisioners)
	}, flags...)
}

// Run runs a manager until ctx ends.
func Run(ctx context.Context, superCluster *rest.Config, options Options, provisioners Provisioners) error {
	mgr, err := New(superCluster, options, provisioners)
	if err != nil {
		return err
	}
	if err := component.AwaitAPI(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newCommand makes the command around what it runs, so that its flags can be
// tested alone.
func newCommand(run func(context.Context, *rest.Config, Options) error, flags ...func(*pflag.FlagSet)) *cobra.Command {
	options := Options{
		CoreDNSImage: dns.DefaultImage, WebhookPort: webhook.DefaultPort, Store: store.Defaults(), Options: component.Defaults(),
	}
	return component.Command{
		Name:    name,
		Short:   "Brings VirtualClusters to life: control planes for tenants of one super cluster",
		Options: &options.Options,
		AddFlags: func(set *pflag.FlagSet) {
			options.AddFlags(set)
			for _, add := range flags {
				add(set)
			}
		},
		Run: func(ctx context.Context, superCluster *rest.Config) error {
			return run(ctx, superCluster, options)
		},
	}.Cobra()
}

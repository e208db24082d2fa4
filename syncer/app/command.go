package app

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Extensions are what a program adds to what the project has.
type Extensions struct {
	// Plugins are validators.
	Plugins []plugins.Registration
	// NetworkProviders are providers of networks, beside flat.
	NetworkProviders []network.Registration
	// Kinds are built-in kinds of Kubernetes. Their names differ from those of
	// the kinds that the project syncs.
	Kinds []kinds.Flow
}

// NewCommand returns the vc-syncer command. A program with plugins of its own
// calls it with their registrations.
func NewCommand(own ...plugins.Registration) *cobra.Command {
	return NewExtendedCommand(Extensions{Plugins: own})
}

// NewExtendedCommand returns the vc-syncer command with extensions.
func NewExtendedCommand(own Extensions) *cobra.Command {
	return newCommand(func(ctx context.Context, super *rest.Config, options Options) error {
		options.Extensions = own
		return Run(ctx, super, options)
	})
}

// newCommand returns the command with the function that it runs, so that its
// flags can be tested separately.
func newCommand(run func(context.Context, *rest.Config, Options) error) *cobra.Command {
	options := DefaultOptions()
	options.Options = component.Defaults()
	return component.Command{
		Name:     name,
		Short:    "Syncs the objects of all tenants between their control planes and the super cluster",
		Options:  &options.Options,
		AddFlags: options.AddFlags,
		Run: func(ctx context.Context, super *rest.Config) error {
			return run(ctx, super, options)
		},
	}.Cobra()
}

package app

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/virtualcluster/virtualcluster/controllers/addons/dns"
	"github.com/virtualcluster/virtualcluster/controllers/store"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// NewCommand makes the vc-manager command with the provisioners that it offers,
// and their flags.
func NewCommand(offered ...provisioner.Registration) *cobra.Command {
	return newCommand(func(ctx context.Context, superCluster *rest.Config, options Options) error {
		return Run(ctx, superCluster, options, offered...)
	}, offered...)
}

// Run runs a manager until ctx ends.
func Run(ctx context.Context, superCluster *rest.Config, options Options, offered ...provisioner.Registration) error {
	mgr, err := New(superCluster, options, offered...)
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
func newCommand(run func(context.Context, *rest.Config, Options) error, offered ...provisioner.Registration) *cobra.Command {
	options := Options{
		CoreDNSImage: dns.DefaultImage, WebhookPort: webhook.DefaultPort, Store: store.Defaults(),
		Registerer: metrics.Registry, Options: component.Defaults(),
	}
	return component.Command{
		Name:    name,
		Short:   "Brings VirtualClusters to life: control planes for tenants of one super cluster",
		Details: describe(offered),
		Options: &options.Options,
		AddFlags: func(set *pflag.FlagSet) {
			options.AddFlags(set)
			for _, registration := range offered {
				if registration.AddFlags != nil {
					registration.AddFlags(set)
				}
			}
		},
		Run: func(ctx context.Context, superCluster *rest.Config) error {
			return run(ctx, superCluster, options)
		},
	}.Cobra()
}

// describe lists provisioners for --help.
func describe(offered []provisioner.Registration) string {
	var text strings.Builder
	text.WriteString("Provisioners, by the name in spec.provisioner of a VirtualCluster:\n")
	aligned := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, registration := range offered {
		// A Builder does not fail.
		_, _ = fmt.Fprintf(aligned, "  %s\t%s\n", registration.Name, registration.Summary)
	}
	_ = aligned.Flush()
	return strings.TrimRight(text.String(), "\n")
}

// Command conformance runs Kubernetes' conformance suite in a tenant, and
// directly in the super cluster of the tenant, both on one real node of this
// machine, and documents the differences. It continues an interrupted run.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/virtualcluster/virtualcluster/internal/component"
)

func main() {
	opts := defaultOptions()
	command := &cobra.Command{
		Use:           "conformance",
		Short:         "Runs Kubernetes' conformance suite through a tenant and directly, and compares the two",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			out := console{command.OutOrStdout()}
			if opts.rivals {
				return runRivals(command.Context(), opts, out)
			}
			return run(command.Context(), opts, out)
		},
	}
	opts.addFlags(command.Flags())
	os.Exit(component.Main(command))
}

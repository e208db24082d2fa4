// Package bench measures the whole path on real apiservers: a load generator, the scenarios, and what they run on. The syncer that
// is measured is a process of its own. Nothing in it can fail for being slow.
package bench

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/virtualcluster/virtualcluster/internal/version"
)

// NewCommand makes the command vc-bench.
func NewCommand() *cobra.Command {
	opts := DefaultOptions()
	command := &cobra.Command{
		Use:           "vc-bench",
		Short:         "Measures what VirtualCluster does with pods, beside the same work done directly in the super cluster",
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			// Clients log into nothing: what goes wrong comes back as an error.
			klog.SetLogger(logr.Discard())
			ctrl.SetLogger(logr.Discard())
			if opts.Smoke {
				if err := opts.shrink(command.Flags()); err != nil {
					return err
				}
			}
			if opts.Binaries == "" {
				self, err := os.Executable()
				if err != nil {
					return fmt.Errorf("looking for the other programs (see --binaries): %w", err)
				}
				opts.Binaries = filepath.Dir(self)
			}
			return Run(command.Context(), opts, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	opts.AddFlags(command.Flags())
	command.AddCommand(newSlowSyncer())
	return command
}

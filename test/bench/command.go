// Package bench measures the whole path on real apiservers. It contains the
// load generator, the scenarios, and their environment. The measured syncer is
// a process of its own. No scenario fails because of a slow result.
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

// NewCommand returns the command vc-bench.
func NewCommand() *cobra.Command {
	opts := DefaultOptions()
	command := &cobra.Command{
		Use:           "vc-bench",
		Short:         "Measure pods created in tenants and, for comparison, directly in the super cluster",
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			// Clients do not log: they return their errors.
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
					return fmt.Errorf("find the other programs (see --binaries): %w", err)
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

package app

import (
	"context"

	"github.com/spf13/cobra"
)

func newUpCommand() *cobra.Command {
	opts := DefaultOptions()
	command := &cobra.Command{
		Use:   "up --data-dir DIR",
		Short: "Run a super cluster, vc-manager and vc-syncer",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return Run(command.Context(), opts, command.OutOrStdout(), untilStopped)
		},
	}
	opts.AddFlags(command.Flags())
	command.Flags().BoolVar(&opts.Bare, "bare", opts.Bare, "run an ordinary cluster, in which VirtualCluster can be installed")
	return command
}

// untilStopped leaves an instance to others.
func untilStopped(ctx context.Context, _ *Instance) error {
	<-ctx.Done()
	return nil
}

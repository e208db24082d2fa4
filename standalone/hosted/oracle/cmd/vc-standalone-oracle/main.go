// Command vc-standalone-oracle is vc-standalone up, with an oracle that checks
// the keys of each request to control planes that share a handler chain. It
// prints violations, and fails at its end if there was one.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/standalone/app"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/oracle"
)

func main() {
	opts := app.DefaultOptions()
	up := &cobra.Command{
		Use: "up", Short: "Run a super cluster, vc-manager and vc-syncer", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			observer := oracle.New(func(violation string) { command.PrintErrln("oracle:", violation) })
			opts.Observer = observer
			err := app.Run(command.Context(), opts, command.OutOrStdout(), func(ctx context.Context, _ *app.Instance) error {
				<-ctx.Done()
				return nil
			})
			command.PrintErrf("oracle: %d accesses of requests, %d of parts of a tenant\n", observer.Attributed(), observer.Nameless())
			if failed := observer.Err(); failed != nil {
				err = errors.Join(err, fmt.Errorf("the oracle: %w", failed))
			}
			return err
		},
	}
	opts.AddFlags(up.Flags())
	root := &cobra.Command{Use: "vc-standalone-oracle", Short: "vc-standalone with an oracle", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(up)
	os.Exit(component.Main(root))
}

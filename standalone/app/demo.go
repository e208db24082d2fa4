package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/virtualcluster/virtualcluster/standalone/demo"
)

func newDemoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show three tenants on one super cluster, one without a control plane, and leave nothing behind",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runDemo(command.Context(), command.OutOrStdout())
		},
	}
}

// runDemo plays in a directory of its own, which is kept if something goes wrong.
func runDemo(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "vc-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	opts := DefaultOptions()
	opts.DataDir, opts.Port, opts.UnsafeNoFsync = dir, 0, true
	opts.GatewayPort, opts.ManagerOptions.ConvertedTenants = 0, true
	err = Run(ctx, opts, out, func(ctx context.Context, instance *Instance) error {
		return demo.Play(ctx, instance.Super, instance.Dir.Path(), out)
	})
	if err == nil && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		return fmt.Errorf("demo failed: %w (log: %s)", err, filepath.Join(dir, logFile))
	}
	return os.RemoveAll(dir)
}

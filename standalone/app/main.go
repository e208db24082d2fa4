// Package app is vc-standalone: the command, and what it puts together.
package app

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/version"
)

const (
	name = "vc-standalone"
	// nodeCommand is the command that runs this program as process 1 of a node.
	nodeCommand = "node"
)

// Main runs the command with the process' arguments until ctx ends, prints an
// error in one line, and returns the exit code.
func Main(ctx context.Context) int {
	component.LimitMemory(ctx)
	component.HideHosts()
	if err := NewCommand().ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: %s\n", name, oneLine(err))
		return 1
	}
	return 0
}

// NewCommand makes the command vc-standalone.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           name,
		Short:         "Tenants with Kubernetes control planes of their own, on one machine and in one process",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	// Packages of Kubernetes register a flag of this name, and of another type, for
	// every command of the process.
	command.Flags().Bool("version", false, "print the version")
	command.AddCommand(newUpCommand(), newDemoCommand(), newRunCommand(), newNodeCommand())
	return command
}

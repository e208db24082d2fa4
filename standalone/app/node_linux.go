package app

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2/textlogger"

	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux/inside"
)

// newNodeCommand is what vc-standalone runs itself with, in namespaces of their own.
func newNodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    nodeCommand,
		Short:  "Be process 1 of a node",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr)))
			return inside.Main(command.Context(), os.Stdin, log.WithName("node"))
		},
	}
}

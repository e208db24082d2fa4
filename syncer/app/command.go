package app

import (
	"flag"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
)

// NewCommand makes the command vc-syncer. The main of a plugin author calls it as ours does.
func NewCommand() *cobra.Command {
	opts := DefaultOptions()
	kubeconfig := ""
	logging := textlogger.NewConfig()
	cmd := &cobra.Command{
		Use:           "vc-syncer",
		Short:         "Carry the objects of all tenants between their control planes and the super cluster",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Logger = textlogger.NewLogger(logging)
			klog.SetLogger(opts.Logger)
			ctrl.SetLogger(opts.Logger)
			if err := opts.Validate(); err != nil {
				return err
			}
			super, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("reading the kubeconfig of the super cluster (--kubeconfig): %w", err)
			}
			return Run(cmd.Context(), super, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", "the kubeconfig of the super cluster; by default the one that the pod runs in")
	opts.AddFlags(flags)
	verbosity := flag.NewFlagSet("", flag.ContinueOnError)
	logging.AddFlags(verbosity)
	flags.AddGoFlagSet(verbosity)
	return cmd
}

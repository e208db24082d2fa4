package component

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/internal/version"
)

// Command describes a program.
type Command struct {
	// Name is what it is called, Short what it does.
	Name, Short string
	// Details follow Short in the help; empty for none.
	Details string
	// Options get their Logger before Run.
	Options *Options
	// AddFlags adds its flags, those of Options among them.
	AddFlags func(*pflag.FlagSet)
	// Run does its work on the super cluster until the context ends.
	Run func(context.Context, *rest.Config) error
}

// Main runs a command with the process' arguments until SIGINT or SIGTERM,
// prints an error in one line, and returns the exit code.
func Main(command *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	LimitMemory(ctx)
	HideHosts()
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", command.Name(), err)
		return 1
	}
	return 0
}

// Cobra makes the command. It adds flags for the super cluster's kubeconfig and
// for logs.
func (c Command) Cobra() *cobra.Command {
	kubeconfig := ""
	logging := textlogger.NewConfig()
	command := &cobra.Command{
		Use:           c.Name,
		Short:         c.Short,
		Long:          strings.TrimSpace(c.Short + "\n\n" + c.Details),
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			c.Options.Logger = textlogger.NewLogger(logging)
			// Libraries that were given no logger write to these two.
			klog.SetLogger(c.Options.Logger)
			log.SetLogger(c.Options.Logger)
			superCluster, err := loadConfig(kubeconfig)
			if err != nil {
				return err
			}
			return c.Run(command.Context(), superCluster)
		},
	}
	flags := command.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", kubeconfig,
		"kubeconfig of the super cluster (default: $KUBECONFIG, ~/.kube/config, or the service account of the pod)")
	c.AddFlags(flags)
	addLogFlags(flags, logging)
	return command
}

func addLogFlags(flags *pflag.FlagSet, logging *textlogger.Config) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	logging.AddFlags(set)
	flags.AddGoFlagSet(set)
}

// loadConfig finds the super cluster.
func loadConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the super cluster (see --kubeconfig): %w", err)
	}
	return config, nil
}

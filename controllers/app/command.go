package app

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/log"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/version"
)

// Main runs the command with the process' arguments until SIGINT or SIGTERM, prints an error in one line, and returns the
// exit code.
func Main(provisioners Provisioners) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := NewCommand(provisioners).ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// NewCommand makes the vc-manager command with the provisioners it is to have.
func NewCommand(provisioners Provisioners) *cobra.Command {
	return newCommand(func(ctx context.Context, superCluster *rest.Config, options Options) error {
		mgr, err := New(superCluster, options, provisioners)
		if err != nil {
			return err
		}
		if err := checkAPI(mgr.GetRESTMapper()); err != nil {
			return err
		}
		return mgr.Start(ctx)
	})
}

// checkAPI says at once what a manager without its API would say after minutes of trying.
func checkAPI(mapper meta.RESTMapper) error {
	kind := tenancyv1alpha1.GroupVersion.WithKind("VirtualCluster")
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the super cluster does not know %s: install the CRDs in config/crd", kind.GroupKind())
	}
	if err != nil {
		return fmt.Errorf("look for the tenancy API in the super cluster: %w", err)
	}
	return nil
}

// newCommand makes the command around what it runs, so that its flags can be tested alone.
func newCommand(run func(context.Context, *rest.Config, Options) error) *cobra.Command {
	options := Options{HealthProbeBindAddress: ":8081"}
	kubeconfig := ""
	logging := textlogger.NewConfig()
	command := &cobra.Command{
		Use:           name,
		Short:         "Brings VirtualClusters to life: control planes for tenants of one super cluster",
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			options.Logger = textlogger.NewLogger(logging)
			// Libraries that were given no logger write to these two.
			klog.SetLogger(options.Logger)
			log.SetLogger(options.Logger)
			superCluster, err := loadConfig(kubeconfig)
			if err != nil {
				return err
			}
			return run(command.Context(), superCluster, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", kubeconfig,
		"kubeconfig of the super cluster (default: $KUBECONFIG, ~/.kube/config, or the service account of the pod)")
	options.AddFlags(flags)
	logFlags := flag.NewFlagSet(name, flag.ContinueOnError)
	logging.AddFlags(logFlags)
	flags.AddGoFlagSet(logFlags)
	return command
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

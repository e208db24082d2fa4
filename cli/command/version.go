package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"

	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/internal/version"
)

// reportVersion is the API version of reports that -o prints. They are no
// objects of an apiserver.
const reportVersion = "cli.tenancy.x-k8s.io/v1alpha1"

// versionOptions are the options of version.
type versionOptions struct {
	*platform

	print  *genericclioptions.PrintFlags
	client bool
}

func newVersion(p *platform) *cobra.Command {
	o := &versionOptions{platform: p, print: genericclioptions.NewPrintFlags("")}
	c := &cobra.Command{
		Use:               "version",
		Short:             "Print the versions of kubectl vc and of the super cluster",
		Example:           "  kubectl vc version --client -o json",
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	c.Flags().BoolVar(&o.client, "client", false, "Print the version of kubectl vc only; no request is sent")
	return c
}

// Complete does nothing: version has no arguments.
func (o *versionOptions) Complete([]string) error { return nil }

// Validate checks the format.
func (o *versionOptions) Validate() error { return validateFormat(o.print) }

// Run prints the versions.
func (o *versionOptions) Run(context.Context) error {
	versions := map[string]any{"client": version.String()}
	if !o.client {
		super, err := o.superVersion()
		if err != nil {
			return err
		}
		versions["superCluster"] = super
	}
	if *o.print.OutputFormat == "" {
		sayf(o.Out, "kubectl vc: %s", versions["client"])
		if !o.client {
			sayf(o.Out, "super cluster: %s", versions["superCluster"])
		}
		return nil
	}
	printer, err := o.print.ToPrinter()
	if err != nil {
		return err
	}
	versions["apiVersion"], versions["kind"] = reportVersion, "Versions"
	return printer.PrintObj(&unstructured.Unstructured{Object: versions}, o.Out)
}

// superVersion returns the Kubernetes version of the super cluster.
func (o *versionOptions) superVersion() (string, error) {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig of the super cluster: %w", err)
	}
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", fmt.Errorf("connect to the super cluster: %w", err)
	}
	info, err := c.ServerVersion()
	if err != nil {
		return "", exit.With(fmt.Errorf("get the version of the super cluster: %w", err),
			"Print the version of kubectl vc alone: kubectl vc version --client")
	}
	return info.GitVersion, nil
}

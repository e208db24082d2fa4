package command

import (
	"context"

	"github.com/spf13/cobra"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// getOptions are the options of get.
type getOptions struct {
	*platform

	print *tableFlags
	names []string
}

func newGet(p *platform) *cobra.Command {
	o := &getOptions{platform: p, print: newTableFlags()}
	c := &cobra.Command{
		Use:   "get NAME...",
		Short: "Print VirtualClusters",
		Long:  "Print VirtualClusters by name: their state as a table, or the whole objects with -o.",
		Example: "  kubectl vc get red -n team -o yaml\n\n" +
			"  # the namespace with the kubeconfig of the tenant\n  kubectl vc get red -o jsonpath='{.status.clusterNamespace}'",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: p.completeNames(0),
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	return c
}

// Complete reads the names.
func (o *getOptions) Complete(args []string) error {
	o.names = args
	return nil
}

// Validate checks the format.
func (o *getOptions) Validate() error { return o.print.validate() }

// Run prints the VirtualClusters: one as itself, several as a list.
func (o *getOptions) Run(ctx context.Context) error {
	list := &tenancyv1alpha1.VirtualClusterList{}
	for _, name := range o.names {
		_, vc, err := o.read(ctx, name)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *vc)
	}
	if o.print.printsTable() || len(list.Items) > 1 {
		return o.print.virtualClusters(o.platform, list, false)
	}
	return o.print.object(o.platform, &list.Items[0])
}

package command

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// completeFlags completes the values of flags that all verbs have, and formats of
// those that have --output.
func (p *platform) completeFlags(root *cobra.Command) {
	completeWith(root, "namespace", p.namespaces)
	completeWith(root, "context", func(context.Context) ([]string, error) {
		config, err := p.flags.ToRawKubeConfigLoader().RawConfig()
		return slices.Sorted(maps.Keys(config.Contexts)), err
	})
	completeFormats(root)
}

// completeFormats completes the formats of all verbs that have them.
func completeFormats(of *cobra.Command) {
	for _, c := range of.Commands() {
		if c.Flags().Lookup("output") != nil {
			complete(c, "output", genericclioptions.NewPrintFlags("").AllowedFormats()...)
		}
		completeFormats(c)
	}
}

// namespaces returns the namespaces that have VirtualClusters.
func (p *platform) namespaces(ctx context.Context) ([]string, error) {
	t, err := p.target("")
	if err != nil {
		return nil, err
	}
	list := &tenancyv1alpha1.VirtualClusterList{}
	if err := t.client.List(ctx, list); err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for i := range list.Items {
		found[list.Items[i].Namespace] = true
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// completeWith completes a flag with what a function returns.
func completeWith(c *cobra.Command, flag string, values func(context.Context) ([]string, error)) {
	err := c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found, err := values(c.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil { // the flag does not exist, which a test finds
		c.PrintErrln(err)
	}
}

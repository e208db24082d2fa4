package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// listOptions are the options of list.
type listOptions struct {
	*platform

	print         *tableFlags
	allNamespaces bool
	selector      string

	parsed labels.Selector
}

func newList(p *platform) *cobra.Command {
	o := &listOptions{platform: p, print: newTableFlags()}
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List VirtualClusters",
		Long:    "List the VirtualClusters of a namespace, or of all namespaces, with their state.",
		Example: "  # those of all namespaces\n  kubectl vc list -A\n\n" +
			"  # names only, for scripts\n  kubectl vc list -n team -o name",
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	c.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List those of all namespaces")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "List those whose labels match the selector, such as team=web")
	return c
}

// Complete does nothing: list has no arguments.
func (o *listOptions) Complete([]string) error { return nil }

// Validate checks the selector and the format.
func (o *listOptions) Validate() error {
	var err error
	if o.parsed, err = labels.Parse(o.selector); err != nil {
		return exit.Usagef("--selector: %w", err)
	}
	return o.print.validate()
}

// Run lists VirtualClusters.
func (o *listOptions) Run(ctx context.Context) error {
	t, err := o.target("")
	if err != nil {
		return err
	}
	if o.allNamespaces {
		t.key.Namespace = metav1.NamespaceAll
	}
	list := &tenancyv1alpha1.VirtualClusterList{}
	err = t.client.List(ctx, list, client.InNamespace(t.key.Namespace), client.MatchingLabelsSelector{Selector: o.parsed})
	if err != nil {
		return explain(err, "list", t.key)
	}
	if o.print.printsTable() && len(list.Items) == 0 {
		sayf(o.ErrOut, "No VirtualClusters found%s. Create one: kubectl vc create NAME", in(t.key.Namespace))
		return nil
	}
	return o.print.virtualClusters(o.platform, list, o.allNamespaces)
}

// in names the namespace for a message.
func in(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return ""
	}
	return fmt.Sprintf(" in namespace %q", namespace)
}

// virtualClusters prints VirtualClusters.
func (f *tableFlags) virtualClusters(p *platform, list *tenancyv1alpha1.VirtualClusterList, namespaced bool) error {
	return f.list(p, list, tenancyv1alpha1.GroupVersion.WithKind("VirtualCluster"), namespaced, virtualClusterTable(list.Items, time.Now()))
}

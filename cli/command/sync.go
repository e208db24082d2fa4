package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/virtualcluster/virtualcluster/cli/difference"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// syncOptions are the options of sync.
type syncOptions struct {
	*platform

	print     *genericclioptions.PrintFlags
	name      string
	object    string
	namespace string
	all       bool
}

func newSync(p *platform) *cobra.Command {
	o := &syncOptions{platform: p, print: genericclioptions.NewPrintFlags("")}
	c := &cobra.Command{
		Use:   "sync NAME [KIND/NAME]",
		Short: "Compare a tenant's objects with their copies, and explain why one is not synced",
		Long: "Compare an object of a tenant with its copy in the super cluster: whether it is synced and, if not, why; " +
			"and the fields that differ. Some differ by design: the syncer translates names, and adds to pods what they need.\n\n" +
			"Without an object, list the objects of the tenant about which the syncer has reported that they are not synced.\n\n" +
			"The control plane of the tenant is read; one that sleeps wakes. The exit code is 7 if an object is not synced.",
		Example:           "  kubectl vc sync red -n team\n\n  kubectl vc sync red pod/web-0 -n team --tenant-namespace shop",
		Args:              arguments(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: o.complete,
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	c.Flags().StringVar(&o.namespace, "tenant-namespace", metav1.NamespaceDefault, "The namespace of the object in the tenant")
	c.Flags().BoolVar(&o.all, "all-fields", false, "Print all fields that differ, not only the first 40")
	return c
}

// Complete reads the names.
func (o *syncOptions) Complete(args []string) error {
	o.name = args[0]
	if len(args) > 1 {
		o.object = args[1]
	}
	return nil
}

// Validate checks the form of the object.
func (o *syncOptions) Validate() error {
	kind, name, _ := strings.Cut(o.object, "/")
	if o.object != "" && (kind == "" || name == "" || strings.Contains(name, "/")) {
		return exit.Usagef("sync: %q is not KIND/NAME, such as pod/web-0", o.object)
	}
	return validateFormat(o.print)
}

// Run compares one object, or lists the pending ones.
func (o *syncOptions) Run(ctx context.Context) error {
	t, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer t.close()
	if o.object == "" {
		return o.list(ctx, t)
	}
	return o.compare(ctx, t)
}

// comparison is what sync prints of one object.
type comparison struct {
	Kind   string `json:"kindOfObject"`
	Tenant string `json:"tenant"`
	Super  string `json:"super"`
	verdict
	Fields []difference.Field `json:"fields"`
	Events []event            `json:"events"`
}

// compare prints one object.
func (o *syncOptions) compare(ctx context.Context, t *tenant) error {
	kind, name, _ := strings.Cut(o.object, "/")
	mapping, err := t.mapping(ctx, kind)
	if err != nil {
		return exit.With(fmt.Errorf("find the kind %s in the tenant: %w", kind, err),
			"List the kinds of the tenant: kubectl vc connect %s -n %s -- kubectl api-resources", t.key.Name, t.key.Namespace)
	}
	found, err := t.sides(ctx, mapping, o.namespace, name)
	if err != nil {
		return err
	}
	here, there := t.keys(mapping, o.namespace, name)
	if found.tenant == nil && found.super == nil {
		return &exit.Error{
			Code: exit.NotFound, Err: fmt.Errorf("%s %s exists neither in the tenant nor in the super cluster", mapping.GroupVersionKind.Kind, here),
			Next: "Select the namespace of the object in the tenant: --tenant-namespace",
		}
	}
	c := comparison{
		Kind: mapping.GroupVersionKind.Kind, Tenant: here.String(), Super: there.String(),
		verdict: found.verdict(t.vc), Events: found.events,
	}
	if found.tenant != nil && found.super != nil {
		c.Fields = difference.Fields(found.tenant.Object, found.super.Object)
	}
	if *o.print.OutputFormat != "" {
		err = printReport(o.print, o.platform, "Comparison", &c)
	} else {
		err = c.write(o.Out, found, o.all, time.Now())
	}
	if err == nil && !c.synced() {
		return &exit.Error{Code: exit.NotSynced}
	}
	return err
}

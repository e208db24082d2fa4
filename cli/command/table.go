package command

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

const (
	wide = "wide"
	none = "<none>"
	// nameFormat prints names, and is the format of the column with them.
	nameFormat = "name"

	nameColumn    = "Name"
	phaseColumn   = "Phase"
	versionColumn = "Version"
	ageColumn     = "Age"
)

// tableFlags are the flags of verbs that print a table unless -o selects
// another format.
type tableFlags struct {
	*genericclioptions.PrintFlags

	noHeaders bool
}

func newTableFlags() *tableFlags {
	return &tableFlags{PrintFlags: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme())}
}

// AddFlags adds the flags to a command.
func (f *tableFlags) AddFlags(c *cobra.Command) {
	f.PrintFlags.AddFlags(c)
	flag := c.Flags().Lookup("output")
	flag.Usage = "Output format: wide for more columns, or one of json, yaml, name, jsonpath, jsonpath-file, jsonpath-as-json, " +
		"go-template, go-template-file, template, templatefile."
	c.Flags().BoolVar(&f.noHeaders, "no-headers", false, "Print the table without its headers")
}

// printsTable reports whether a table is to be printed.
func (f *tableFlags) printsTable() bool {
	return *f.OutputFormat == wide || *f.OutputFormat == "" && *f.TemplatePrinterFlags.TemplateArgument == ""
}

// validate rejects formats that do not exist.
func (f *tableFlags) validate() error {
	if f.printsTable() {
		return nil
	}
	return validateFormat(f.PrintFlags)
}

// validateFormat rejects formats that do not exist.
func validateFormat(f *genericclioptions.PrintFlags) error {
	if _, err := f.ToPrinter(); err != nil {
		return exit.Usagef("--output: %w", err)
	}
	return nil
}

// printer returns the printer of the objects, or of the table.
func (f *tableFlags) printer(namespaced bool) (printers.ResourcePrinter, error) {
	if !f.printsTable() {
		return f.ToPrinter()
	}
	return printers.NewTablePrinter(printers.PrintOptions{
		NoHeaders: f.noHeaders, WithNamespace: namespaced, Wide: *f.OutputFormat == wide,
	}), nil
}

// object prints one object as itself.
func (f *tableFlags) object(p *platform, obj runtime.Object) error {
	printer, err := f.printer(false)
	if err != nil {
		return err
	}
	return printer.PrintObj(obj, p.Out)
}

// list prints a list of objects of a kind, or the table of them.
func (f *tableFlags) list(p *platform, list runtime.Object, kind schema.GroupVersionKind, namespaced bool, table *metav1.Table) error {
	printer, err := f.printer(namespaced)
	if err != nil {
		return err
	}
	if f.printsTable() {
		return printer.PrintObj(table, p.Out)
	}
	err = meta.EachListItem(list, func(object runtime.Object) error {
		// Clients leave it out; printers of lists need it.
		object.GetObjectKind().SetGroupVersionKind(kind)
		if *f.OutputFormat == nameFormat { // the printer of names takes no lists
			return printer.PrintObj(object, p.Out)
		}
		return nil
	})
	if err != nil || *f.OutputFormat == nameFormat {
		return err
	}
	return printer.PrintObj(list, p.Out)
}

// virtualClusterColumns are the columns of a table of VirtualClusters. Those of
// priority 1 are printed with -o wide.
func virtualClusterColumns() []metav1.TableColumnDefinition {
	const text = "string"
	return []metav1.TableColumnDefinition{
		{Name: nameColumn, Type: text, Format: nameFormat},
		{Name: phaseColumn, Type: text},
		{Name: "Ready", Type: text},
		{Name: "Synced", Type: text},
		{Name: versionColumn, Type: text},
		{Name: ageColumn, Type: text},
		{Name: "Provisioner", Type: text, Priority: 1},
		{Name: "Endpoint", Type: text, Priority: 1},
		{Name: "Root-Namespace", Type: text, Priority: 1},
		{Name: "Quota", Type: text, Priority: 1},
		{Name: "Message", Type: text, Priority: 1},
	}
}

// virtualClusterTable returns the table of VirtualClusters.
func virtualClusterTable(items []tenancyv1alpha1.VirtualCluster, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: virtualClusterColumns()}
	for i := range items {
		vc := &items[i]
		quota := ""
		if vc.Status.Quota != nil {
			quota = vc.Status.Quota.Summary
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells: []any{
				vc.Name, or(string(vc.Status.Phase)), conditionStatus(vc, tenancyv1alpha1.ConditionReady),
				conditionStatus(vc, tenancyv1alpha1.ConditionSynced), or(vc.Status.Version), age(vc.CreationTimestamp, now),
				or(string(cmp.Or(vc.Status.Provisioner, vc.Spec.Provisioner))), or(vc.Status.Endpoint),
				or(vc.Status.ClusterNamespace), or(quota), or(vc.Status.Message),
			},
			Object: runtime.RawExtension{Object: vc},
		})
	}
	return table
}

// conditionStatus returns the status of a condition, with the reason if it is
// not true.
func conditionStatus(vc *tenancyv1alpha1.VirtualCluster, kind string) string {
	c := meta.FindStatusCondition(vc.Status.Conditions, kind)
	switch {
	case c == nil:
		return "Unknown"
	case c.Status == metav1.ConditionTrue:
		return string(c.Status)
	}
	return string(c.Status) + " (" + c.Reason + ")"
}

// age returns how long ago a time was, as kubectl prints it.
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// or returns a text, or what stands for none.
func or(text string) string {
	if text == "" {
		return none
	}
	return text
}

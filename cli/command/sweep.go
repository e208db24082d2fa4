package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/internal/orphans"
)

// sweepOptions are the options of sweep.
type sweepOptions struct {
	*platform

	print  *tableFlags
	names  []string
	dryRun bool
}

func newSweep(p *platform) *cobra.Command {
	o := &sweepOptions{platform: p, print: newTableFlags()}
	c := &cobra.Command{
		Use:   "sweep [NAMESPACE...]",
		Short: "List or delete what is left of VirtualClusters that vanished",
		Long: "List the namespaces of the super cluster that are left of VirtualClusters which vanished without their finalizer, " +
			"or delete those that are named, with everything in them. This cannot be undone.\n\n" +
			"A namespace of a VirtualCluster that exists is not deleted, nor one that has changed since it was listed.",
		Example: "  # what is left\n  kubectl vc sweep\n\n  # delete a part of it\n  kubectl vc sweep team-0a1b2c-red-shop team-0a1b2c-red\n\n" +
			"  # delete all of it\n  kubectl vc sweep -o name | cut -d/ -f2 | xargs kubectl vc sweep",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "Delete nothing, and check what would be deleted")
	return c
}

// Complete reads the names.
func (o *sweepOptions) Complete(args []string) error {
	o.names = args
	return nil
}

// Validate checks the format.
func (o *sweepOptions) Validate() error { return o.print.validate() }

// Run lists what is left, or deletes what is named.
func (o *sweepOptions) Run(ctx context.Context) error {
	c, err := o.client()
	if err != nil {
		return err
	}
	found, err := orphans.Find(ctx, c)
	if err != nil {
		return err
	}
	if len(o.names) > 0 {
		return o.delete(ctx, c, found)
	}
	if o.print.printsTable() && len(found) == 0 {
		sayf(o.ErrOut, "Nothing is left of VirtualClusters that vanished.")
		return nil
	}
	list := &corev1.NamespaceList{Items: found}
	return o.print.list(o.platform, list, corev1.SchemeGroupVersion.WithKind("Namespace"), false, orphanTable(found, time.Now()))
}

// delete deletes the namespaces that are named, in this order. It deletes none
// if one of them is no orphan.
func (o *sweepOptions) delete(ctx context.Context, c client.Client, found []corev1.Namespace) error {
	var chosen []*corev1.Namespace
	for _, name := range o.names {
		i := slices.IndexFunc(found, func(ns corev1.Namespace) bool { return ns.Name == name })
		if i < 0 {
			return notLeft(name, orphans.ErrNoOrphan)
		}
		chosen = append(chosen, &found[i])
	}
	var options []client.DeleteOption
	suffix := ""
	if o.dryRun {
		options, suffix = append(options, client.DryRunAll), " (dry run)"
	}
	for _, ns := range chosen {
		if err := orphans.Delete(ctx, c, ns, options...); err != nil {
			return notLeft(ns.Name, err)
		}
		sayf(o.Out, "namespace %q of VirtualCluster %s deleted%s", ns.Name, orphans.Owner(ns), suffix)
	}
	return nil
}

func notLeft(name string, err error) error {
	err = fmt.Errorf("sweep namespace %s: %w", name, err)
	if errors.Is(err, orphans.ErrNoOrphan) {
		return &exit.Error{Code: exit.NotFound, Err: err, Next: "List what is left: kubectl vc sweep"}
	}
	return err
}

// orphanTable returns the table of namespaces that are left.
func orphanTable(found []corev1.Namespace, now time.Time) *metav1.Table {
	const text = "string"
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: nameColumn, Type: text, Format: nameFormat},
		{Name: "VirtualCluster", Type: text},
		{Name: "Status", Type: text},
		{Name: ageColumn, Type: text},
	}}
	for i := range found {
		ns := &found[i]
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  []any{ns.Name, orphans.Owner(ns).String(), string(ns.Status.Phase), age(ns.CreationTimestamp, now)},
			Object: runtime.RawExtension{Object: ns},
		})
	}
	return table
}

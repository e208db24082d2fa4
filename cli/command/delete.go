package command

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// deleteOptions are the options of delete.
type deleteOptions struct {
	*platform

	print *genericclioptions.PrintFlags
	wait  waitFlags
	yes   bool
	names []string
}

func newDelete(p *platform) *cobra.Command {
	o := &deleteOptions{platform: p, print: printFlags("deleted"), wait: waitFlags{wait: true}}
	c := &cobra.Command{
		Use:   "delete NAME...",
		Short: "Delete VirtualClusters with everything that the tenants have",
		Long: "Delete VirtualClusters: the pods and namespaces of the tenant in the super cluster and, of a hosted tenant, its control plane " +
			"with its data. This cannot be undone. The name has to be typed again, unless --yes is given.",
		Example:           "  kubectl vc delete red -n team",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: p.completeNames(0),
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	o.wait.AddFlags(c.Flags(), "the tenant is gone")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "Delete without asking for the name")
	return c
}

// Complete reads the names.
func (o *deleteOptions) Complete(args []string) error {
	o.names = args
	return nil
}

// Validate rejects deletions that no user can confirm.
func (o *deleteOptions) Validate() error {
	if !o.yes && !printers.IsTerminal(o.In) {
		return exit.With(exit.Usagef("delete VirtualCluster %s: the input is no terminal, so that the deletion cannot be confirmed",
			strings.Join(o.names, ", ")), "Add --yes to delete without confirmation")
	}
	if err := validateFormat(o.print); err != nil {
		return err
	}
	return o.wait.validate()
}

// Run deletes the VirtualClusters one after the other, so that an error shows
// what is left.
func (o *deleteOptions) Run(ctx context.Context) error {
	printer, err := o.print.ToPrinter()
	if err != nil {
		return err
	}
	for _, name := range o.names {
		t, err := o.target(name)
		if err != nil {
			return err
		}
		if err := o.delete(ctx, t, printer); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes one.
func (o *deleteOptions) delete(ctx context.Context, t target, printer printers.ResourcePrinter) error {
	vc, err := t.get(ctx)
	if err != nil {
		return err
	}
	if err := o.confirm(vc); err != nil {
		return err
	}
	// The user has confirmed the deletion of this tenant, not of a successor
	// with its name.
	err = t.client.Delete(ctx, vc, client.Preconditions{UID: &vc.UID})
	if client.IgnoreNotFound(err) != nil {
		return explain(err, "delete", t.key)
	}
	if o.wait.wait {
		if err := t.await(ctx, o.ErrOut, goal{name: "gone"}, o.wait.timeout); err != nil {
			return err
		}
	}
	return printer.PrintObj(vc, o.Out)
}

// confirm asks for the name.
func (o *deleteOptions) confirm(vc *tenancyv1alpha1.VirtualCluster) error {
	if o.yes {
		return nil
	}
	tenant := vc.Namespace + "/" + vc.Name
	same, err := o.retyped(vc.Name, "This deletes all pods, objects and data of tenant "+tenant+". It cannot be undone.\n"+
		"Type the name of the tenant to delete it: ")
	if err == nil && !same {
		err = fmt.Errorf("delete VirtualCluster %s: the names differ; nothing was deleted", tenant)
	}
	return err
}

// retyped asks the user to type a name, and reports whether it is the same.
func (p *platform) retyped(name, question string) (bool, error) {
	printf(p.ErrOut, "%s", question)
	answer, err := bufio.NewReader(p.In).ReadString('\n')
	if strings.TrimSpace(answer) == name {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the confirmation: %w", err)
	}
	return false, nil
}

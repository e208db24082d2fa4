package command

import (
	"context"

	"github.com/spf13/cobra"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
)

// projectGetOptions are the options of project get.
type projectGetOptions struct {
	*platform

	print *tableFlags
	names []string
}

func newProjectGet(p *platform) *cobra.Command {
	o := &projectGetOptions{platform: p, print: newTableFlags()}
	c := &cobra.Command{
		Use:               "get NAME...",
		Short:             "Print projects",
		Long:              "Print projects by name: their state as a table, or the whole objects with -o.",
		Example:           "  kubectl vc project get shop -o yaml",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: p.completeProjects(0),
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	return c
}

// Complete reads the names.
func (o *projectGetOptions) Complete(args []string) error {
	o.names = args
	return nil
}

// Validate checks the format.
func (o *projectGetOptions) Validate() error { return o.print.validate() }

// Run prints the projects: one as itself, several as a list.
func (o *projectGetOptions) Run(ctx context.Context) error {
	own, c, err := o.ownProjects()
	if err != nil {
		return err
	}
	list := &projectsv1alpha1.ProjectList{}
	for _, name := range o.names {
		found, err := getProject(ctx, c, name)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *found)
	}
	if o.print.printsTable() || len(list.Items) > 1 {
		return o.print.printProjects(o.platform, list, own.project())
	}
	return o.print.object(o.platform, &list.Items[0])
}

package command

import (
	"context"

	"github.com/spf13/cobra"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
)

// projectListOptions are the options of project list.
type projectListOptions struct {
	*platform

	print *tableFlags
}

func newProjectList(p *platform) *cobra.Command {
	o := &projectListOptions{platform: p, print: newTableFlags()}
	c := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List your projects",
		Long:              "List the projects of which you are a member. A star marks the default one.",
		Example:           "  kubectl vc project list -o name",
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	return c
}

// Complete does nothing: project list has no arguments.
func (o *projectListOptions) Complete([]string) error { return nil }

// Validate checks the format.
func (o *projectListOptions) Validate() error { return o.print.validate() }

// Run lists the projects.
func (o *projectListOptions) Run(ctx context.Context) error {
	own, c, err := o.ownProjects()
	if err != nil {
		return err
	}
	list := &projectsv1alpha1.ProjectList{}
	if err := c.List(ctx, list); err != nil {
		return explainProject(err, "list projects")
	}
	if o.print.printsTable() && len(list.Items) == 0 {
		sayf(o.ErrOut, "You are a member of no project. An admin of the platform adds you to spec.members of a VirtualCluster.")
		return nil
	}
	return o.print.printProjects(o.platform, list, own.project())
}

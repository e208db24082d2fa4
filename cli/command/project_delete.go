package command

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
)

// projectDeleteOptions are the options of project delete.
type projectDeleteOptions struct {
	*platform

	name string
}

func newProjectDelete(p *platform) *cobra.Command {
	o := &projectDeleteOptions{platform: p}
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a project that you have requested",
		Long: "Delete a project that you have requested, with everything in it. It does not wait: " +
			"the name and its place among your projects are free again when nothing of the project is left.",
		Example:           "  kubectl vc project delete shop",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: p.completeProjects(1),
		RunE:              run(o),
	}
}

// Complete reads the name.
func (o *projectDeleteOptions) Complete(args []string) error {
	o.name = args[0]
	return nil
}

// Validate does nothing: the gateway says which projects there are.
func (o *projectDeleteOptions) Validate() error { return nil }

// Run deletes the project.
func (o *projectDeleteOptions) Run(ctx context.Context) error {
	c, err := o.projects()
	if err != nil {
		return err
	}
	project := &projectsv1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	if err := c.Delete(ctx, project); err != nil {
		return explainProject(err, "delete project "+o.name)
	}
	sayf(o.Out, "project %q is being deleted", o.name)
	return nil
}

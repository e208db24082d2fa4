package command

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
)

// projectRequestOptions are the options of project request.
type projectRequestOptions struct {
	*platform

	name, template string
}

func newProjectRequest(p *platform) *cobra.Command {
	o := &projectRequestOptions{platform: p}
	c := &cobra.Command{
		Use:   "request NAME",
		Short: "Request a project",
		Long: "Request a project with a name, which you may delete again, and of which you become a member. " +
			"The platform decides what the project is, by a ProjectTemplate, and how many you may have.",
		Example:           "  kubectl vc project request shop\n  kubectl vc project use shop",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              run(o),
	}
	c.Flags().StringVar(&o.template, "from", "", "Name of the ProjectTemplate. Default: the only one from which you may request projects")
	return c
}

// Complete reads the name.
func (o *projectRequestOptions) Complete(args []string) error {
	o.name = args[0]
	return nil
}

// Validate does nothing: the gateway checks the name.
func (o *projectRequestOptions) Validate() error { return nil }

// Run creates the request.
func (o *projectRequestOptions) Run(ctx context.Context) error {
	c, err := o.projects()
	if err != nil {
		return err
	}
	request := &projectsv1alpha1.ProjectRequest{
		ObjectMeta: metav1.ObjectMeta{Name: o.name}, Spec: projectsv1alpha1.ProjectRequestSpec{Template: o.template},
	}
	if err := c.Create(ctx, request); err != nil {
		return explainProject(err, "request project "+o.name)
	}
	sayf(o.Out, "project %q created (%s)", o.name, request.Status.ClusterKey)
	return nil
}

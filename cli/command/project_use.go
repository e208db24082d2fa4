package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/virtualcluster/virtualcluster/cli/project"
)

// projectUseOptions are the options of project use.
type projectUseOptions struct {
	*platform

	name string
}

func newProjectUse(p *platform) *cobra.Command {
	o := &projectUseOptions{platform: p}
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Choose the default project",
		Long: "Choose the project that kubectl uses by default. It is stored in the current context of your kubeconfig, " +
			"whose server becomes that of the project. A project that does not exist is not stored.",
		Example:           "  kubectl vc project use shop\n  kubectl get pods",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: p.completeProjects(1),
		RunE:              run(o),
	}
}

// Complete reads the name.
func (o *projectUseOptions) Complete(args []string) error {
	o.name = args[0]
	return nil
}

// Validate does nothing: the gateway says which projects there are.
func (o *projectUseOptions) Validate() error { return nil }

// Run stores the project.
func (o *projectUseOptions) Run(ctx context.Context) error {
	own, c, err := o.ownProjects()
	if err != nil {
		return err
	}
	if _, err := getProject(ctx, c, o.name); err != nil {
		return err
	}
	if err := project.Use(own.config, own.name, o.name); err != nil {
		return err
	}
	if err := own.write(); err != nil {
		return err
	}
	sayf(o.Out, "context %q uses project %q", own.name, o.name)
	return nil
}

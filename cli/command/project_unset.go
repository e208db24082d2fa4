package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/virtualcluster/virtualcluster/cli/project"
)

// projectUnsetOptions are the options of project unset.
type projectUnsetOptions struct{ *platform }

func newProjectUnset(p *platform) *cobra.Command {
	return &cobra.Command{
		Use:               "unset",
		Short:             "Forget the default project",
		Long:              "Forget the default project of the current context of your kubeconfig, whose server becomes what it was before.",
		Example:           "  kubectl vc project unset",
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              run(&projectUnsetOptions{platform: p}),
	}
}

// Complete does nothing: project unset has no arguments.
func (o *projectUnsetOptions) Complete([]string) error { return nil }

// Validate does nothing: there are no options.
func (o *projectUnsetOptions) Validate() error { return nil }

// Run removes the project from the kubeconfig.
func (o *projectUnsetOptions) Run(context.Context) error {
	own, err := o.ownContext()
	if err != nil {
		return err
	}
	before, err := project.Unset(own.config, own.name)
	if errors.Is(err, project.ErrNone) {
		return own.errNoProject()
	}
	if err != nil {
		return err
	}
	if err := own.write(); err != nil {
		return err
	}
	sayf(o.Out, "context %q no longer uses project %q", own.name, before)
	return nil
}

package command

import (
	"context"

	"github.com/spf13/cobra"
)

// projectCurrentOptions are the options of project current.
type projectCurrentOptions struct{ *platform }

func newProjectCurrent(p *platform) *cobra.Command {
	return &cobra.Command{
		Use:               "current",
		Short:             "Print the default project",
		Long:              "Print the default project of the current context of your kubeconfig. Without one, the exit code is 3.",
		Example:           "  kubectl vc project current",
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              run(&projectCurrentOptions{platform: p}),
	}
}

// Complete does nothing: project current has no arguments.
func (o *projectCurrentOptions) Complete([]string) error { return nil }

// Validate does nothing: there are no options.
func (o *projectCurrentOptions) Validate() error { return nil }

// Run prints the project.
func (o *projectCurrentOptions) Run(context.Context) error {
	own, err := o.ownContext()
	if err != nil {
		return err
	}
	if own.project() == "" {
		return own.errNoProject()
	}
	sayf(o.Out, "%s", own.project())
	return nil
}

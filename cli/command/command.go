// Package command has the verbs of kubectl vc, the kubectl plugin for platform
// admins: one file a verb. Each verb has options with Complete, which reads
// what the flags leave out, Validate, which rejects before anything is done,
// and Run.
package command

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/cli/terminal"
)

// Main runs a command line, prints an error with the next step, and returns the
// exit code.
func Main(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	root := New(streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	report(terminal.NewWriter(streams.ErrOut), err)
	return exit.Of(err)
}

// report prints an error.
func report(w io.Writer, err error) {
	if err == nil {
		return
	}
	if coded, ok := errors.AsType[*exit.Error](err); ok && coded.Err == nil {
		return
	}
	printf(w, "error: %v\n", err)
	if next := exit.Next(err); next != "" {
		sayf(w, "%s", next)
	}
}

// New returns the command with all verbs. It escapes what it prints.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	p := newPlatform(streams)
	root := &cobra.Command{
		Use:   "kubectl-vc",
		Short: "Create, use and observe VirtualClusters, the tenants of a super cluster",
		Long: "Create, use and observe VirtualClusters, the tenants of a super cluster.\n\n" +
			"The commands use the current context of your kubeconfig, which has to be that of the super cluster, as kubectl does. " +
			"VirtualClusters are named in the namespace of the context, or in that of --namespace.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl vc"},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          arguments(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.ErrOut)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return exit.With(exit.Usagef("%w", err), "Read the help: %s --help", c.CommandPath())
	})
	p.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		newCreate(p), newList(p), newGet(p), newDescribe(p), newKubeconfig(p), newConnect(p), newSync(p),
		newSleep(p), newWake(p), newMove(p), newDelete(p), newProject(p), newDoctor(p), newProbe(p), newSweep(p), newUninstall(p), newVersion(p),
	)
	p.completeFlags(root)
	return root
}

// verb is what a command does.
type verb interface {
	// Complete reads the arguments, and what flags leave out.
	Complete(args []string) error
	// Validate rejects options that cannot be used. Nothing has been sent yet.
	Validate() error
	// Run does the work.
	Run(ctx context.Context) error
}

// run returns the function of a command that runs a verb.
func run(v verb) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := v.Complete(args); err != nil {
			return err
		}
		if err := v.Validate(); err != nil {
			return err
		}
		return v.Run(c.Context())
	}
}

// arguments makes errors of a command's arguments those of the command line.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return exit.With(exit.Usagef("%w", err), "Read the help: %s --help", c.CommandPath())
		}
		return nil
	}
}

// printFlags are the flags of -o for a verb that prints one object and the
// operation.
func printFlags(operation string) *genericclioptions.PrintFlags {
	return genericclioptions.NewPrintFlags(operation).WithTypeSetter(scheme())
}

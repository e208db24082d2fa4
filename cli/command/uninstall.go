package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"

	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/cli/installation"
	"github.com/virtualcluster/virtualcluster/cli/removal"
	"github.com/virtualcluster/virtualcluster/config/rbac"
)

// uninstallOptions are the options of uninstall.
type uninstallOptions struct {
	*platform

	print     *genericclioptions.PrintFlags
	namespace string
	purge     bool
	abandon   bool
	dryRun    bool
	yes       bool
	timeout   time.Duration
}

func newUninstall(p *platform) *cobra.Command {
	o := &uninstallOptions{platform: p, print: printFlags("deleted")}
	c := &cobra.Command{
		Use:   "uninstall --purge",
		Short: "Delete the installation with all tenants",
		Long: "Delete everything that belongs to the installation of the super cluster: all VirtualClusters with everything that the tenants " +
			"have, the components with their roles, certificates and volumes, the release of Helm, the CustomResourceDefinitions, and the " +
			"namespaces. This cannot be undone. The namespace of the installation has to be typed again, unless --yes is given.\n\n" +
			"`helm uninstall` keeps the tenants instead.\n\n" +
			"Objects that the chart or config/default has not installed are kept, and with them the namespace that they are in. " +
			"A command that was interrupted continues when it is run again.\n\n" +
			"vc-manager has to run, and vc-host for hosted tenants, because they delete what the tenants have. " +
			"If they cannot run any more, --abandon-tenants removes their finalizers.",
		Example: "  # what would be deleted\n  kubectl vc uninstall --purge --dry-run\n\n  kubectl vc uninstall --purge",
		Args:    arguments(cobra.NoArgs), ValidArgsFunction: cobra.NoFileCompletions, RunE: run(o),
	}
	o.print.AddFlags(c)
	c.Flags().BoolVar(&o.purge, "purge", false, "Confirm that tenants are deleted, too; required")
	c.Flags().BoolVar(&o.abandon, "abandon-tenants", false,
		"Remove the finalizers of vc-manager and vc-host, if they cannot run any more; data in an etcd that is not of the installation is left")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "Print what would be deleted, and delete nothing")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "Delete without asking for the namespace")
	c.Flags().StringVar(&o.namespace, "installation-namespace", "",
		"The namespace of the installation; default: that of its Deployments, or "+rbac.Namespace)
	c.Flags().DurationVar(&o.timeout, "timeout", 10*time.Minute, "How long the deletion may take")
	return c
}

// Complete makes a dry run say that it is one.
func (o *uninstallOptions) Complete([]string) error {
	if o.dryRun {
		return o.print.Complete("%s (dry run)")
	}
	return nil
}

// Validate rejects deletions that no user has confirmed, or can.
func (o *uninstallOptions) Validate() error {
	switch {
	case !o.purge:
		return exit.With(exit.Usagef("uninstall: --purge is missing"),
			"To keep the tenants: helm uninstall. To delete them, too: kubectl vc uninstall --purge")
	case o.timeout <= 0:
		return exit.Usagef("--timeout: %s is not more than 0", o.timeout)
	case !o.dryRun && !o.yes && !printers.IsTerminal(o.In):
		return exit.With(exit.Usagef("uninstall: the input is no terminal, so that the deletion cannot be confirmed"),
			"Add --yes to delete without confirmation")
	}
	return validateFormat(o.print)
}

// Run deletes the installation.
func (o *uninstallOptions) Run(ctx context.Context) error {
	r, err := o.removal(ctx)
	if err != nil {
		return err
	}
	if err := o.confirm(r.Namespace); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if err := r.Run(bounded); err != nil {
		return err
	}
	if !o.dryRun {
		sayf(o.ErrOut, "VirtualCluster is uninstalled")
	}
	return nil
}

// removal returns the removal of the installation.
func (o *uninstallOptions) removal(ctx context.Context) (*removal.Removal, error) {
	config, c, err := o.everything()
	if err != nil {
		return nil, err
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the super cluster: %w", err)
	}
	printer, err := o.print.ToPrinter()
	if err != nil {
		return nil, err
	}
	found, err := installation.Find(ctx, c)
	if err != nil {
		return nil, err
	}
	return &removal.Removal{
		Client: c, Resources: resources, Namespace: cmp.Or(o.namespace, found, rbac.Namespace), DryRun: o.dryRun, Abandon: o.abandon,
		Deleted:  func(object *unstructured.Unstructured) error { return printer.PrintObj(object, o.Out) },
		Progress: func(format string, args ...any) { sayf(o.ErrOut, format, args...) },
	}, nil
}

// confirm asks for the namespace of the installation.
func (o *uninstallOptions) confirm(namespace string) error {
	if o.yes || o.dryRun {
		return nil
	}
	same, err := o.retyped(namespace, "This deletes VirtualCluster in namespace "+namespace+", and all tenants with their pods and data. "+
		"It cannot be undone.\n"+
		"Type the namespace to delete it: ")
	if err == nil && !same {
		err = errors.New("uninstall: the namespaces differ; nothing was deleted")
	}
	return err
}

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// createOptions are the options of create.
type createOptions struct {
	*platform

	print *genericclioptions.PrintFlags
	wait  waitFlags

	name            string
	spec            specFlags
	labels          map[string]string
	createNamespace bool
	dryRun          string
	connect         bool
}

// specFlags are the fields of the spec that have a flag.
type specFlags struct {
	provisioner, kubernetesVersion, isolation, secret string
	serviceCIDR, secondaryServiceCIDR                 string
	weight, sleepAfter                                int32
}

func newCreate(p *platform) *cobra.Command {
	o := &createOptions{platform: p, print: printFlags("created")}
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a VirtualCluster",
		Long: "Create a VirtualCluster, and wait on request until the tenant can work.\n\n" +
			"Fields of the spec without a flag: print the object with --dry-run=client -o yaml, edit it, and apply it with kubectl.",
		Example: "  # create a tenant and use it\n  kubectl vc create red -n team --create-namespace --connect\n\n" +
			"  # a tenant whose control plane runs elsewhere\n  kubectl vc create red --provisioner External --kubeconfig-secret red\n\n" +
			"  # a manifest to edit\n  kubectl vc create red --dry-run=client -o yaml > red.yaml",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	o.wait.AddFlags(c.Flags(), "the tenant is Ready")
	o.spec.addFlags(c)
	c.Flags().StringToStringVarP(&o.labels, "labels", "l", nil, "Labels of the VirtualCluster, such as team=web")
	c.Flags().BoolVar(&o.createNamespace, "create-namespace", false, "Create the namespace if it does not exist")
	c.Flags().BoolVar(&o.connect, "connect", false, "Wait, and run a shell with the kubeconfig of the tenant")
	c.Flags().StringVar(&o.dryRun, "dry-run", dryRunNone, "none; client prints the object only; server sends it without storing it")
	complete(c, "dry-run", dryRunNone, dryRunClient, dryRunServer)
	return c
}

// addFlags adds the flags of the spec.
func (f *specFlags) addFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.provisioner, "provisioner", "", "How the control plane runs; the default is that of vc-manager")
	flags.StringVar(&f.secret, "kubeconfig-secret", "", "With provisioner External: the Secret with the kubeconfig of the control plane")
	flags.StringVar(&f.kubernetesVersion, "kubernetes-version", "", "The version of the control plane, such as 1.36")
	flags.StringVar(&f.serviceCIDR, "service-cidr", "", "The range of Service addresses, such as 10.96.0.0/16")
	flags.StringVar(&f.secondaryServiceCIDR, "secondary-service-cidr", "",
		"The range of the other IP family, such as fd00:10:96::/112; it cannot be added later")
	flags.StringVar(&f.isolation, "isolation", "", "With provisioner Hosted: Dedicated or Shared")
	flags.Int32Var(&f.sleepAfter, "sleep-after", 0, "With provisioner Hosted: the seconds without use after which the control plane sleeps")
	flags.Int32Var(&f.weight, "weight", 0, "The share of the syncer's work while several tenants have work, 1 to 1000")
	complete(c, "provisioner", string(tenancyv1alpha1.ProvisionerHosted), string(tenancyv1alpha1.ProvisionerExternal),
		string(tenancyv1alpha1.ProvisionerConverted))
	complete(c, "isolation", string(tenancyv1alpha1.IsolationDedicated), string(tenancyv1alpha1.IsolationShared))
}

// complete sets the values with which the shell completes a flag.
func complete(c *cobra.Command, flag string, values ...cobra.Completion) {
	// It fails only for a flag that does not exist, which a test finds.
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		c.PrintErrln(err)
	}
}

// Complete reads the name. A dry run prints the object.
func (o *createOptions) Complete(args []string) error {
	o.name = args[0]
	o.wait.wait = o.wait.wait || o.connect
	return nil
}

// Validate checks the flags. The apiserver validates the object.
func (o *createOptions) Validate() error {
	switch o.dryRun {
	case dryRunNone:
	case dryRunClient, dryRunServer:
		if o.wait.wait {
			return exit.Usagef("--dry-run creates nothing that --wait or --connect could wait for")
		}
		if err := o.print.Complete("%s (dry run)"); err != nil {
			return err
		}
	default:
		return exit.Usagef("--dry-run: %q is none of %s, %s and %s", o.dryRun, dryRunNone, dryRunClient, dryRunServer)
	}
	if err := validateFormat(o.print); err != nil {
		return err
	}
	return o.wait.validate()
}

// Run creates the VirtualCluster.
func (o *createOptions) Run(ctx context.Context) error {
	namespace, err := o.namespace()
	if err != nil {
		return err
	}
	vc := o.virtualCluster(namespace)
	if o.dryRun == dryRunClient {
		return o.printed(vc)
	}
	t, err := o.target(o.name)
	if err != nil {
		return err
	}
	if err := o.create(ctx, t, vc); err != nil {
		return err
	}
	if err := o.printed(vc); err != nil || !o.wait.wait {
		return err
	}
	if err := t.await(ctx, o.ErrOut, ready(), o.wait.timeout); err != nil {
		return err
	}
	sayf(o.ErrOut, "VirtualCluster %s is Ready", t.key)
	if !o.connect {
		return nil
	}
	shell := &connectOptions{platform: o.platform, lifetime: defaultLifetime}
	if err := shell.Complete([]string{o.name}); err != nil {
		return err
	}
	return shell.Run(ctx)
}

// virtualCluster returns the object that the flags describe.
func (o *createOptions) virtualCluster(namespace string) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.name, Labels: o.labels},
		Spec:       o.spec.virtualClusterSpec(),
	}
}

// virtualClusterSpec returns the spec that the flags describe.
func (f *specFlags) virtualClusterSpec() tenancyv1alpha1.VirtualClusterSpec {
	spec := tenancyv1alpha1.VirtualClusterSpec{
		Provisioner:          tenancyv1alpha1.ProvisionerType(f.provisioner),
		KubernetesVersion:    f.kubernetesVersion,
		ServiceCIDR:          f.serviceCIDR,
		SecondaryServiceCIDR: f.secondaryServiceCIDR,
		Weight:               f.weight,
	}
	if f.secret != "" {
		spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: f.secret}
	}
	if f.isolation != "" || f.sleepAfter > 0 {
		spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Isolation: tenancyv1alpha1.Isolation(f.isolation)}
	}
	if f.sleepAfter > 0 {
		spec.ControlPlane.Sleep = &tenancyv1alpha1.SleepSpec{AfterIdleSeconds: &f.sleepAfter}
	}
	return spec
}

// create creates the object and, if it is requested, its namespace.
func (o *createOptions) create(ctx context.Context, t target, vc *tenancyv1alpha1.VirtualCluster) error {
	var options []client.CreateOption
	if o.dryRun == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	if o.createNamespace {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: vc.Namespace}}
		if err := t.client.Create(ctx, ns, options...); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", vc.Namespace, err)
		}
	}
	err := t.client.Create(ctx, vc, options...)
	switch {
	case apierrors.IsAlreadyExists(err):
		return exit.With(fmt.Errorf("create VirtualCluster %s: it exists", t.key),
			"See it, or choose another name: kubectl vc describe %s -n %s", t.key.Name, t.key.Namespace)
	case apierrors.IsNotFound(err):
		return exit.With(fmt.Errorf("create VirtualCluster %s: %w", t.key, err),
			"If the namespace is missing, add --create-namespace. "+
				"If the kind is, check that this is the super cluster: kubectl config current-context")
	}
	return explain(err, "create", t.key)
}

// printed prints the object.
func (o *createOptions) printed(vc *tenancyv1alpha1.VirtualCluster) error {
	printer, err := o.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(vc, o.Out)
}

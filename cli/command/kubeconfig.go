package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/virtualcluster/virtualcluster/cli/access"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// defaultLifetime is how long the credentials that a command issues are valid.
const defaultLifetime = time.Hour

// ownerOnly are the permissions of files with credentials.
const ownerOnly = 0o600

// kubeconfigOptions are the options of kubeconfig.
type kubeconfigOptions struct {
	*platform

	print     *genericclioptions.PrintFlags
	name      string
	lifetime  time.Duration
	permanent bool
	internal  bool
	direct    bool
	gateway   bool
	merge     bool
	file      string
}

func newKubeconfig(p *platform) *cobra.Command {
	o := &kubeconfigOptions{platform: p, print: genericclioptions.NewPrintFlags("").WithDefaultOutput("yaml")}
	c := &cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Print a kubeconfig of a tenant",
		Long: "Print a kubeconfig with all permissions in a tenant.\n\n" +
			"Its credentials are a token that expires. It is one of the service account kube-system/" + access.Account +
			" of the tenant; deleting that invalidates all its tokens. --permanent prints the credentials of the tenant's admin instead, " +
			"which are valid as long as the certificates of the tenant.\n\n" +
			"The server is the address of the control plane if no other has it, and otherwise the gateway, " +
			"since many clients ignore the TLS server name in a kubeconfig. Without a gateway, the kubeconfig has such a name.",
		Example: "  # hand it to the tenant\n  kubectl vc kubeconfig red -n team --permanent --file red.kubeconfig\n\n" +
			"  # use the tenant as a context of your own kubeconfig for an hour\n  kubectl vc kubeconfig red -n team --merge\n" +
			"  kubectl --context vc/team/red get pods -A",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: p.completeNames(1),
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	c.Flags().DurationVar(&o.lifetime, "duration", defaultLifetime, "How long the credentials are valid, at least 10m")
	c.Flags().BoolVar(&o.permanent, "permanent", false, "Print the permanent credentials of the tenant's admin")
	c.Flags().BoolVar(&o.internal, "internal", false, "Print the address for clients inside the super cluster, such as CI jobs that run in it")
	c.Flags().BoolVar(&o.direct, "direct", false, "Print the address of the control plane, even if it needs a TLS server name")
	c.Flags().BoolVar(&o.gateway, "gateway", false, "Print the address of the gateway, even if the control plane has one that no other has")
	c.Flags().BoolVar(&o.merge, "merge", false, "Add the tenant as a context to your kubeconfig; the current context stays as it is")
	c.Flags().StringVar(&o.file, "file", "", "Write the kubeconfig to a file that only you can read")
	return c
}

// Complete reads the name.
func (o *kubeconfigOptions) Complete(args []string) error {
	o.name = args[0]
	return nil
}

// Validate checks the flags.
func (o *kubeconfigOptions) Validate() error {
	if o.merge && o.file != "" {
		return exit.Usagef("--merge and --file exclude each other")
	}
	if o.internal && o.direct || o.direct && o.gateway || o.gateway && o.internal {
		return exit.Usagef("--internal, --direct and --gateway exclude each other")
	}
	if err := validateLifetime(o.lifetime); err != nil {
		return err
	}
	return validateFormat(o.print)
}

// validateLifetime rejects lifetimes that no apiserver issues.
func validateLifetime(lifetime time.Duration) error {
	if lifetime < access.MinLifetime {
		return exit.Usagef("--duration: %s is less than %s, the shortest lifetime of a token", lifetime, access.MinLifetime)
	}
	return nil
}

// Run prints, writes or merges the kubeconfig.
func (o *kubeconfigOptions) Run(ctx context.Context) error {
	config, t, err := o.config(ctx)
	if err != nil {
		return err
	}
	switch {
	case o.merge:
		return o.mergeInto(t, config)
	case o.file != "":
		return o.write(config)
	}
	return o.printed(config, o.Out)
}

// config returns the kubeconfig of the tenant.
func (o *kubeconfigOptions) config(ctx context.Context) (*clientcmdapi.Config, target, error) {
	if o.permanent {
		return o.permanentConfig(ctx)
	}
	t, err := o.open(ctx, o.name)
	if err != nil {
		return nil, target{}, err
	}
	defer t.close()
	token, err := access.IssueToken(ctx, t.objects, o.lifetime)
	if err != nil {
		return nil, target{}, exit.With(err, "If the tenant issues no tokens, use the permanent credentials: --permanent")
	}
	sayf(o.ErrOut, "The credentials expire at %s", token.Expires.Local().Format(time.RFC3339))
	server, err := o.address()(ctx, t.client, t.vc)
	if err != nil {
		return nil, target{}, err
	}
	if t.route.Via != "" && server.Host == t.admin.Host {
		sayf(o.ErrOut, "%s cannot be reached from here; use the tenant by: kubectl vc connect %s -n %s",
			t.admin.Host, t.key.Name, t.key.Namespace)
	}
	return access.Kubeconfig(t.key, server, &clientcmdapi.AuthInfo{Token: token.Token}), t.target, nil
}

// address returns what reads the kubeconfig with the server to print.
func (o *kubeconfigOptions) address() access.Reader {
	switch {
	case o.internal:
		return access.Internal
	case o.direct:
		return access.Admin
	case o.gateway:
		return access.Gateway
	}
	return access.ForUsers
}

// permanentConfig returns the kubeconfig of the tenant's admin. No request is
// sent to the tenant.
func (o *kubeconfigOptions) permanentConfig(ctx context.Context) (*clientcmdapi.Config, target, error) {
	t, vc, err := o.read(ctx, o.name)
	if err != nil {
		return nil, t, err
	}
	admin, err := o.address()(ctx, t.client, vc)
	if err != nil {
		return nil, t, err
	}
	return access.Kubeconfig(t.key, admin, access.Permanent(admin)), t, nil
}

// mergeInto adds the context of the tenant to the user's kubeconfig.
func (o *kubeconfigOptions) mergeInto(t target, config *clientcmdapi.Config) error {
	own, err := o.ownKubeconfig()
	if err != nil {
		return err
	}
	own.config = access.Merge(own.config, config)
	if err := own.write(); err != nil {
		return err
	}
	name := access.ContextName(t.key)
	sayf(o.ErrOut, "Use the tenant: kubectl --context %s get namespaces", name)
	sayf(o.Out, "context %q added", name)
	return nil
}

// write writes the kubeconfig to a file.
func (o *kubeconfigOptions) write(config *clientcmdapi.Config) (err error) {
	// An existing file keeps its permissions when it is written to, so that it
	// is created again.
	if err := os.Remove(o.file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	file, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerOnly)
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return o.printed(config, file)
}

// printed prints the kubeconfig in the requested format.
func (o *kubeconfigOptions) printed(config *clientcmdapi.Config, w io.Writer) error {
	external := &clientcmdv1.Config{}
	if err := clientcmdlatest.Scheme.Convert(config, external, nil); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	external.APIVersion, external.Kind = clientcmdlatest.Version, "Config"
	printer, err := o.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(external, w)
}

package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/cli/terminal"
)

// platform is the super cluster that the flags select, and the streams of the
// command. Out and ErrOut escape what is written.
type platform struct {
	genericiooptions.IOStreams

	// raw are the streams without escaping, for programs that the command runs.
	raw   genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
}

func newPlatform(streams genericiooptions.IOStreams) *platform {
	return &platform{
		IOStreams: genericiooptions.IOStreams{
			In: streams.In, Out: terminal.NewWriter(streams.Out), ErrOut: terminal.NewWriter(streams.ErrOut),
		},
		raw:   streams,
		flags: genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams),
	}
}

// scheme has the kinds of VirtualCluster, of projects and of Kubernetes.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(tenancyv1alpha1.AddToScheme(s))
	utilruntime.Must(projectsv1alpha1.AddToScheme(s))
	return s
}

// client connects to the super cluster.
func (p *platform) client() (client.WithWatch, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, exit.With(fmt.Errorf("read the kubeconfig of the super cluster: %w", err),
			"Select one with --kubeconfig and --context")
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme()})
	if err != nil {
		return nil, exit.With(fmt.Errorf("connect to the super cluster: %w", err),
			"Check the connection: kubectl version")
	}
	return c, nil
}

// everything connects to the super cluster without a limit of requests, for verbs
// that read or delete objects of many kinds, definitions of custom resources
// included.
func (p *platform) everything() (*rest.Config, client.Client, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, nil, exit.With(fmt.Errorf("read the kubeconfig of the super cluster: %w", err),
			"Select one with --kubeconfig and --context")
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	kinds := scheme()
	utilruntime.Must(apiextensionsv1.AddToScheme(kinds))
	c, err := client.New(config, client.Options{Scheme: kinds})
	if err != nil {
		return nil, nil, exit.With(fmt.Errorf("connect to the super cluster: %w", err),
			"Check the connection: kubectl version")
	}
	return config, c, nil
}

// namespace returns the namespace of the VirtualClusters that are named.
func (p *platform) namespace() (string, error) {
	namespace, _, err := p.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	return namespace, nil
}

// target is a VirtualCluster that a command line names, and the client to reach
// it.
type target struct {
	client client.WithWatch
	key    client.ObjectKey
}

// target returns the VirtualCluster of a name.
func (p *platform) target(name string) (target, error) {
	namespace, err := p.namespace()
	if err != nil {
		return target{}, err
	}
	c, err := p.client()
	return target{client: c, key: client.ObjectKey{Namespace: namespace, Name: name}}, err
}

// get reads the VirtualCluster.
func (t target) get(ctx context.Context) (*tenancyv1alpha1.VirtualCluster, error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := t.client.Get(ctx, t.key, vc); err != nil {
		return nil, explain(err, "get", t.key)
	}
	return vc, nil
}

// read reads the VirtualCluster of a name.
func (p *platform) read(ctx context.Context, name string) (target, *tenancyv1alpha1.VirtualCluster, error) {
	t, err := p.target(name)
	if err != nil {
		return t, nil, err
	}
	vc, err := t.get(ctx)
	return t, vc, err
}

// explain adds the verb, the VirtualCluster and the next step to an error of
// the super cluster's apiserver.
func explain(err error, verb string, key client.ObjectKey) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return exit.With(fmt.Errorf("%s VirtualCluster %s: %w", verb, key, err),
			"VirtualCluster is not installed on this cluster, or the context is not that of the super cluster: kubectl config current-context")
	case apierrors.IsNotFound(err):
		return exit.With(fmt.Errorf("%s VirtualCluster %s: it does not exist: %w", verb, key, err),
			"List those that exist: kubectl vc list -A")
	}
	return fmt.Errorf("%s VirtualCluster %s: %w", verb, key, err)
}

// completeNames completes the names of VirtualClusters, as many as a verb
// takes; 0 means any number.
func (p *platform) completeNames(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := p.names(c.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return unused(names, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// names returns the names of the VirtualClusters of the namespace.
func (p *platform) names(ctx context.Context) ([]string, error) {
	t, err := p.target("")
	if err != nil {
		return nil, err
	}
	list := &tenancyv1alpha1.VirtualClusterList{}
	if err := t.client.List(ctx, list, client.InNamespace(t.key.Namespace)); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// unused returns the names that are not among the arguments yet.
func unused(names, args []string) []string {
	left := make([]string, 0, len(names))
	taken := map[string]bool{}
	for _, arg := range args {
		taken[arg] = true
	}
	for _, name := range names {
		if !taken[name] {
			left = append(left, name)
		}
	}
	return left
}

// sayf prints a line for the user. Output that programs read is printed to Out.
func sayf(w io.Writer, format string, args ...any) { printf(w, format+"\n", args...) }

// printf prints text. A command does not fail when its output is closed.
func printf(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

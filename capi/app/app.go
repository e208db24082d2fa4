// Package app is the Cluster API provider as a command. It has a subcommand for
// each of the two providers that clusterctl installs, which differ in what they
// may do.
package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
	infrav1 "github.com/virtualcluster/virtualcluster/capi/apis/infrastructure/v1alpha1"
	"github.com/virtualcluster/virtualcluster/capi/controllers/nestedcluster"
	"github.com/virtualcluster/virtualcluster/capi/controllers/nestedcontrolplane"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Options say how a provider runs. The zero value is good for one inside
// another process.
type Options struct {
	// Namespace is the only one whose objects are reconciled; empty for all.
	Namespace string
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter of the
	// objects that are reconciled; empty for all.
	WatchFilter string
	component.Options
}

// AddFlags binds the options to flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace whose Clusters are reconciled (default: all)")
	flags.StringVar(&o.WatchFilter, "watch-filter", o.WatchFilter,
		"value of the label "+clusterv1.WatchLabel+" of the objects that are reconciled (default: all)")
	o.Options.AddFlags(flags)
}

// Provider is one of the two providers.
type Provider struct {
	name, command, short string
	setup                func(manager.Manager, Options) error
}

// Infrastructure returns the infrastructure provider.
func Infrastructure() Provider {
	return Provider{"vc-capi-infrastructure", "infrastructure", "Reconciles NestedClusters", setupInfrastructure}
}

// ControlPlane returns the control plane provider.
func ControlPlane() Provider {
	return Provider{"vc-capi-control-plane", "control-plane", "Reconciles NestedControlPlanes", setupControlPlane}
}

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// NewCommand makes the command vc-capi.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "vc-capi", Short: "Cluster API provider: Clusters that are tenants of this cluster",
		SilenceUsage: true, SilenceErrors: true,
	}
	for _, provider := range []Provider{Infrastructure(), ControlPlane()} {
		command.AddCommand(provider.newCommand())
	}
	return command
}

func (p Provider) newCommand() *cobra.Command {
	options := Options{Options: component.Defaults()}
	return component.Command{
		Name: p.command, Short: p.short, Options: &options.Options, AddFlags: options.AddFlags,
		Run: func(ctx context.Context, config *rest.Config) error { return p.Run(ctx, config, options) },
	}.Cobra()
}

// Run runs the provider until ctx ends.
func (p Provider) Run(ctx context.Context, config *rest.Config, options Options) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1.AddToScheme, tenancyv1alpha1.AddToScheme, infrav1.AddToScheme, controlplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("set up scheme: %w", err)
		}
	}
	managerOptions := options.Manager(p.name, scheme)
	managerOptions.Cache = options.cache()
	mgr, err := manager.New(component.ClientConfig(config, p.name), managerOptions)
	if err != nil {
		return fmt.Errorf("make manager: %w", err)
	}
	if err := p.setup(mgr, options); err != nil {
		return err
	}
	if err := options.AddReadiness(mgr, p.name, &clusterv1.Cluster{}, &tenancyv1alpha1.VirtualCluster{}); err != nil {
		return err
	}
	if err := component.AwaitAPI(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func setupInfrastructure(mgr manager.Manager, options Options) error {
	reconciler := &nestedcluster.Reconciler{Client: mgr.GetClient(), WatchFilter: options.WatchFilter}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up NestedCluster reconciler: %w", err)
	}
	return nil
}

func setupControlPlane(mgr manager.Manager, options Options) error {
	reconciler := &nestedcontrolplane.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), WatchFilter: options.WatchFilter}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up NestedControlPlane reconciler: %w", err)
	}
	return nil
}

// cache returns what the provider's cache holds. Of all Secrets, that is the
// kubeconfigs which vc-manager writes to the root namespaces of tenants.
func (o *Options) cache() cache.Options {
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{cache.AllNamespaces: {}},
				Field:      fields.OneTermEqualSelector(metav1.ObjectNameField, names.AdminKubeconfigSecret),
			},
		},
	}
	if o.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return options
}

// Package app puts vc-gateway together: the command, and the same thing for
// programs that run it beside others.
package app

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/gateway/forward"
	"github.com/virtualcluster/virtualcluster/gateway/front"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
	"github.com/virtualcluster/virtualcluster/internal/cardinality"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/servingcert"
)

// name is the program's, in user agents.
const name = "vc-gateway"

// NewCommand makes the vc-gateway command.
func NewCommand() *cobra.Command { return newCommand(Run) }

// newCommand makes the command around what it runs, so that its flags can be
// tested alone.
func newCommand(run func(context.Context, *rest.Config, Options) error) *cobra.Command {
	options := DefaultOptions()
	options.Options = component.Defaults()
	return component.Command{
		Name:     name,
		Short:    "Serves all tenants at one address",
		Options:  &options.Options,
		AddFlags: options.AddFlags,
		Run: func(ctx context.Context, super *rest.Config) error {
			return run(ctx, super, options)
		},
	}.Cobra()
}

// Run runs a gateway until ctx ends.
func Run(ctx context.Context, super *rest.Config, options Options) error {
	mgr, err := New(super, options)
	if err != nil {
		return err
	}
	if err := component.AwaitAPI(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// New makes a gateway for the super cluster. It runs with the manager that is
// returned.
func New(super *rest.Config, options Options) (manager.Manager, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	cardinality.Enforce()
	metrics, err := front.NewMetrics(options.Registerer)
	if err != nil {
		return nil, err
	}
	config := component.ClientConfig(super, name)
	mgr, err := newManager(config, options)
	if err != nil {
		return nil, err
	}
	certificate, err := addCertificate(mgr, options)
	if err != nil {
		return nil, err
	}
	index := tenants.NewIndex(options.DefaultTenant)
	converter, err := newConverter(config, mgr, options)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(converter); err != nil {
		return nil, fmt.Errorf("add what serves converted tenants: %w", err)
	}
	if err := addReconciler(mgr, options, index, converter); err != nil {
		return nil, err
	}
	if options.DefaultTenant.Name != "" {
		if err := mgr.Add(&defaultTenant{Client: mgr.GetClient(), of: options.DefaultTenant, log: mgr.GetLogger()}); err != nil {
			return nil, fmt.Errorf("add the default tenant: %w", err)
		}
	}
	if err := addSuperCluster(mgr, config, options, index); err != nil {
		return nil, err
	}
	reviewer, err := newReviewer(config)
	if err != nil {
		return nil, err
	}
	handler := &front.Handler{
		Domain: options.Domain, Index: index, Reviewer: reviewer, SuperUsers: options.hasSuperUsers(),
		Limits: options.Limits, Metrics: metrics, Forwarder: forward.NewForwarder(),
		Admission: converter.admission.handler, Conversion: converter.conversion.handler,
	}
	if options.Projects {
		if handler.Projects, err = addProjects(mgr, config); err != nil {
			return nil, err
		}
	}
	if options.AccessLog {
		handler.Log = mgr.GetLogger().WithName("access")
	}
	err = mgr.Add(&front.Server{
		Address: options.Address, Listeners: options.Listeners, Certificate: certificate, Handler: handler, Log: mgr.GetLogger(),
	})
	if err != nil {
		return nil, fmt.Errorf("add the server: %w", err)
	}
	return mgr, options.AddReadiness(mgr, name, &tenancyv1alpha1.VirtualCluster{}, &corev1.Secret{})
}

// newManager makes a manager whose cache holds what says who the tenants are,
// and of their Secrets those that are for the gateway.
func newManager(super *rest.Config, options Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme, tenancyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("set up scheme: %w", err)
		}
	}
	converted, err := labels.Parse(names.Converted)
	if err != nil {
		return nil, fmt.Errorf("select what converted tenants have: %w", err)
	}
	managerOptions := options.Manager(name, scheme)
	managerOptions.Cache = cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:    {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, names.GatewaySecret)},
			&corev1.Namespace{}: {Label: converted},
			&resources.CRD{}: {Label: converted, Transform: func(object any) (any, error) {
				return resources.Trim(object.(*resources.CRD)), nil
			}},
		},
	}
	mgr, err := manager.New(super, managerOptions)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	return mgr, nil
}

// addCertificate adds what keeps the serving certificate, and returns where it
// is asked for.
func addCertificate(mgr manager.Manager, options Options) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	if options.CertSecret.Name != "" {
		keeper := &servingcert.Keeper{Secret: options.CertSecret, Hosts: servingcert.HostsOf(options.Hosts...)}
		return keeper.GetCertificate, keeper.SetupWithManager(mgr, name)
	}
	watcher, err := certwatcher.New(options.CertFile, options.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the serving certificate: %w", err)
	}
	return watcher.GetCertificate, mgr.Add(watcher)
}

// RegisterMetrics registers the metrics of a gateway that does not run, for
// those who describe them.
func RegisterMetrics(registerer prometheus.Registerer) error {
	_, err := front.NewMetrics(registerer)
	return err
}

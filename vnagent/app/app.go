// Package app puts vn-agent together: the command, and the same thing for
// programs that run it beside others.
package app

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/vnagent"
)

// name is the program's, in user agents.
const name = "vn-agent"

// It reads objects one by one, except those that identify tenants, and the
// usage of their pods.
//
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=virtualclusters,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=kubelet-client-ca,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces;pods;pods/log,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces;pods,verbs=list
// +kubebuilder:rbac:groups=metrics.k8s.io,resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=pods/exec;pods/attach;pods/portforward,verbs=get;create
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// NewCommand makes the vn-agent command.
func NewCommand() *cobra.Command {
	return newCommand(Run)
}

// newCommand makes the command around what it runs, so that its flags can be
// tested alone.
func newCommand(run func(context.Context, *rest.Config, Options) error) *cobra.Command {
	options := DefaultOptions()
	options.Options = component.Defaults()
	return component.Command{
		Name:     name,
		Short:    "Answers logs, exec, attach and port-forward of tenants' pods in the place of their virtual nodes",
		Options:  &options.Options,
		AddFlags: options.AddFlags,
		Run: func(ctx context.Context, super *rest.Config) error {
			return run(ctx, super, options)
		},
	}.Cobra()
}

// Run runs an agent until ctx ends.
func Run(ctx context.Context, super *rest.Config, options Options) error {
	mgr, err := New(ctx, super, options)
	if err != nil {
		return err
	}
	if err := component.AwaitAPI(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// New makes an agent for the super cluster. It runs with the manager that is returned.
func New(ctx context.Context, super *rest.Config, options Options) (manager.Manager, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	metrics, err := vnagent.NewMetrics(options.Registerer)
	if err != nil {
		return nil, err
	}
	super = component.ClientConfig(super, name)
	mgr, err := newManager(super, options)
	if err != nil {
		return nil, err
	}
	certificate, err := certwatcher.New(options.CertFile, options.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the serving certificate: %w", err)
	}
	server, err := vnagent.NewServer(ctx, vnagent.Options{
		Address:          options.Address,
		Listener:         options.Listener,
		Certificate:      certificate.GetCertificate,
		Super:            super,
		Cache:            mgr.GetCache(),
		Indexer:          mgr.GetFieldIndexer(),
		Live:             mgr.GetAPIReader(),
		StreamsPerTenant: options.StreamsPerTenant,
		Metrics:          metrics,
		Logger:           mgr.GetLogger(),
	})
	if err != nil {
		return nil, err
	}
	for _, runnable := range []manager.Runnable{certificate, server} {
		if err := mgr.Add(runnable); err != nil {
			return nil, fmt.Errorf("add a part of the agent: %w", err)
		}
	}
	return mgr, options.AddReadiness(mgr, name, &tenancyv1alpha1.VirtualCluster{}, &corev1.ConfigMap{})
}

// newManager makes a manager whose cache holds what says who the tenants are,
// and nothing of what is theirs.
func newManager(super *rest.Config, options Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, tenancyv1alpha1.AddToScheme, metricsv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("set up scheme: %w", err)
		}
	}
	managerOptions := options.Manager(name, scheme)
	managerOptions.Cache = cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
			Field: fields.OneTermEqualSelector(metav1.ObjectNameField, names.KubeletClientCAConfigMap),
		}},
	}
	mgr, err := manager.New(super, managerOptions)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	return mgr, nil
}

// RegisterMetrics registers the metrics of an agent that does not run, for
// those who describe them.
func RegisterMetrics(registerer prometheus.Registerer) error {
	_, err := vnagent.NewMetrics(registerer)
	return err
}

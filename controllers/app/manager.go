package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/addons"
	"github.com/virtualcluster/virtualcluster/controllers/addons/dns"
	"github.com/virtualcluster/virtualcluster/controllers/addons/metricsapi"
	"github.com/virtualcluster/virtualcluster/controllers/addons/requester"
	"github.com/virtualcluster/virtualcluster/controllers/projectclaim"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/converted"
	"github.com/virtualcluster/virtualcluster/controllers/shareddns"
	"github.com/virtualcluster/virtualcluster/controllers/store"
	"github.com/virtualcluster/virtualcluster/controllers/virtualcluster"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/secrets"
	"github.com/virtualcluster/virtualcluster/internal/servingcert"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// name is the component's, in events, field ownership and user agents.
const name = "vc-manager"

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups="",namespace=vc-system,resources=secrets,resourceNames=vc-manager-webhook,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=vc-system,resources=secrets,resourceNames=vc-manager-webhook,verbs=create;patch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=vc-manager,verbs=get;list
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=vc-manager,verbs=watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=vc-manager,verbs=patch
// +kubebuilder:rbac:groups="",namespace=vc-system,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=vc-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=vc-system,resources=leases,resourceNames=vc-manager,verbs=get;update

// New makes a manager for the super cluster that config leads to. It does
// nothing until it is started.
func New(superCluster *rest.Config, options Options, offered ...provisioner.Registration) (manager.Manager, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	managerOptions, err := options.manager()
	if err != nil {
		return nil, err
	}
	certificate := options.webhookCertificate()
	managerOptions.WebhookServer = options.webhookServer(certificate)
	mgr, err := manager.New(component.ClientConfig(superCluster, name), managerOptions)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	if err := errors.Join(addControllers(mgr, options, offered, certificate), options.addWebhook(mgr, certificate)); err != nil {
		return nil, err
	}
	// VirtualClusters are not in ByObject, which takes CRDs that are installed.
	cached := slices.AppendSeq([]client.Object{&tenancyv1alpha1.VirtualCluster{}}, maps.Keys(managerOptions.Cache.ByObject))
	return mgr, options.AddReadiness(mgr, name, cached...)
}

// addControllers adds what the manager is for.
func addControllers(
	mgr manager.Manager, options Options, offered []provisioner.Registration, certificate *servingcert.Keeper,
) error {
	provisioners, err := options.provisioners(mgr, offered)
	if err != nil {
		return err
	}
	etcd := options.newStore(mgr)
	metrics, err := registerMetrics(options.Registerer, sources{
		reader: mgr.GetCache(), registry: provisioners, byDefault: options.DefaultProvisioner, webhook: certificate, store: etcd,
	})
	if err != nil {
		return err
	}
	reconciler := &virtualcluster.Reconciler{
		Client:           mgr.GetClient(),
		Live:             mgr.GetAPIReader(),
		Provisioners:     provisioners,
		Default:          options.DefaultProvisioner,
		ServiceAddresses: options.servicePool(), SecondaryServiceAddresses: options.secondaryServicePool(),
		Gateway: options.Gateway,
		Events:  mgr.GetEventRecorder(name),
		Metrics: metrics,
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up VirtualCluster reconciler: %w", err)
	}
	return errors.Join(addAddons(mgr, options, provisioners), addSharedDNS(mgr, options), addStore(mgr, etcd), addProjects(mgr))
}

// addProjects adds the reconciler of projects that users request.
func addProjects(mgr manager.Manager) error {
	reconciler := &projectclaim.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(name)}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the reconciler of ProjectClaims: %w", err)
	}
	return nil
}

// provisioners makes the provisioners of a manager. The default has to be one of
// them: no VirtualCluster that names none would work otherwise.
func (o *Options) provisioners(mgr manager.Manager, registrations []provisioner.Registration) (provisioner.Registry, error) {
	if o.ConvertedTenants {
		registrations = append(slices.Clip(registrations), converted.Registration(o.Gateway, o.SharedDNS.Name != ""))
	}
	offered, disabled, err := provisioner.Make(mgr, registrations...)
	if err != nil {
		return nil, err
	}
	if _, ok := offered[o.DefaultProvisioner]; !ok && o.DefaultProvisioner != "" {
		return nil, errors.Join(append(disabled,
			fmt.Errorf("--default-provisioner: this manager has no provisioner %s; it has: %s", o.DefaultProvisioner, offered))...)
	}
	for _, reason := range disabled {
		o.Logger.Info("A provisioner is not offered", "cause", reason.Error())
	}
	o.Logger.Info("Provisioners", "offered", offered.String(), "default", o.DefaultProvisioner)
	return offered, nil
}

// addAddons has kept in place what the tenants' clusters are to have.
func addAddons(mgr manager.Manager, options Options, provisioners provisioner.Registry) error {
	reconciler := &addons.Reconciler{Client: mgr.GetClient(), Capabilities: func(vc *tenancyv1alpha1.VirtualCluster) provisioner.Capabilities {
		if way, offered := provisioners[vc.Status.Provisioner]; offered {
			return way.Capabilities()
		}
		return provisioner.Capabilities{}
	}}
	switch {
	case options.SharedDNS.Name != "":
		reconciler.Addons = append(reconciler.Addons, dns.Addons(options.CoreDNSImage)...)
	case options.CoreDNSImage != "":
		reconciler.Addons = append(reconciler.Addons, dns.Addon(options.CoreDNSImage))
	}
	metrics := metricsapi.Retired()
	if options.AgentAddress != "" {
		var err error
		if metrics, err = metricsapi.Addon(options.AgentAddress, options.AgentCAFile); err != nil {
			return fmt.Errorf("--vn-agent-address and --vn-agent-ca-file: %w", err)
		}
	}
	reconciler.Addons = append(reconciler.Addons, metrics, requester.Addon())
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the reconciler of addons: %w", err)
	}
	return nil
}

// addSharedDNS directs the DNS addresses of tenants to the DNS that they share.
// Without one, it deletes what a manager with one has written.
func addSharedDNS(mgr manager.Manager, options Options) error {
	reconciler := &shareddns.Reconciler{Client: mgr.GetClient(), Service: options.SharedDNS}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the reconciler of the shared DNS: %w", err)
	}
	return nil
}

// newStore returns what ensures what the etcd of the installation needs; nil if
// there is none.
func (o *Options) newStore(mgr manager.Manager) *store.Reconciler {
	if o.Store.Service.Name == "" {
		return nil
	}
	keeper := secrets.Keeper{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Owner: name}
	return &store.Reconciler{Secrets: keeper, Store: o.Store}
}

// addStore adds the reconciler of the store, if there is one.
func addStore(mgr manager.Manager, reconciler *store.Reconciler) error {
	if reconciler == nil {
		return nil
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the reconciler of the store: %w", err)
	}
	return nil
}

// cached returns the objects of the super cluster in the manager's cache.
func (o *Options) cached() (map[client.Object]cache.ByObject, error) {
	cached, err := virtualcluster.CachedObjects()
	if err != nil {
		return nil, err
	}
	more, err := shareddns.CachedObjects(o.SharedDNS)
	maps.Copy(cached, more)
	return cached, err
}

// manager returns controller-runtime's options.
func (o *Options) manager() (manager.Options, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, rbacv1.AddToScheme,
		tenancyv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return manager.Options{}, fmt.Errorf("set up scheme: %w", err)
		}
	}
	cached, err := o.cached()
	if err != nil {
		return manager.Options{}, fmt.Errorf("set up cache: %w", err)
	}
	m := o.Manager(name, scheme)
	m.Cache = cache.Options{ByObject: cached, DefaultTransform: cache.TransformStripManagedFields()}
	return m, nil
}

// Package dns gives each tenant that has Service addresses of its own a DNS of its own: CoreDNS in the tenant's cluster, at the
// address that its pods are told.
package dns

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// DefaultImage is the CoreDNS that belongs to the Kubernetes of this project.
const DefaultImage = "registry.k8s.io/coredns/coredns:v1.14.2"

const (
	// fieldOwner owns what is applied.
	fieldOwner = "vc-manager"
	// interval is how often a tenant's DNS is looked at: nobody watches it.
	interval = 30 * time.Second
	workers  = 4
	// timeout is how long one tenant may take.
	timeout = 15 * time.Second
)

// Reconciler keeps the DNS of tenants in place.
type Reconciler struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Image is that of CoreDNS.
	Image string
}

// SetupWithManager adds the reconciler to a manager whose cache has the Secrets with the admin kubeconfigs.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("dns").
		For(&tenancyv1alpha1.VirtualCluster{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, ReconciliationTimeout: timeout}).
		Complete(r)
}

// Reconcile puts the DNS of one tenant in place, and looks again after a while.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, vc); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !vc.DeletionTimestamp.IsZero() || vc.Status.ServiceCIDR == "" || !isReady(vc) {
		return reconcile.Result{}, nil // a change leads here again
	}
	if err := r.ensure(ctx, vc); err != nil {
		return reconcile.Result{}, fmt.Errorf("DNS of VirtualCluster %s: %w", req, err)
	}
	return reconcile.Result{RequeueAfter: wait.Jitter(interval, 0.2)}, nil
}

func isReady(vc *tenancyv1alpha1.VirtualCluster) bool {
	return meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady)
}

// ensure brings a tenant's DNS to what it should be, unless the tenant takes care of it.
func (r *Reconciler) ensure(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	address, err := serviceAddress(vc.Status.ServiceCIDR)
	if err != nil {
		return err
	}
	tenant, closeTenant, err := r.connect(ctx, vc)
	if err != nil {
		return err
	}
	defer closeTenant()
	if own, err := takesCare(ctx, tenant); own || err != nil {
		return err
	}
	err = Ensure(ctx, tenant, Settings{Image: r.Image, Domain: cmp.Or(vc.Spec.ClusterDomain, addresses.DefaultDomain), Address: address})
	if apierrors.IsInvalid(err) {
		return fmt.Errorf("the tenant has another one, which cannot become the one that is wanted; "+
			"delete that, or annotate namespace %s with %s=%s: %w", metav1.NamespaceSystem, names.DNS, names.DNSUnmanaged, err)
	}
	return err
}

// connect makes a client of a tenant for this once, and what closes its connections.
func (r *Reconciler) connect(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (dynamic.Interface, func(), error) {
	key := types.NamespacedName{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret}
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, key, secret); err != nil {
		return nil, nil, fmt.Errorf("get Secret %s: %w", key, err)
	}
	config, err := kubeconfig.RESTConfig(secret.Data[names.AdminKubeconfigKey])
	if err != nil {
		return nil, nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	config.UserAgent = fieldOwner
	// A transport that is shared would be kept for as long as the process runs. One with a function of its own is not.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("set up a client: %w", err)
	}
	tenant, err := dynamic.NewForConfigAndClient(config, httpClient)
	return tenant, func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) }, err
}

// takesCare says whether the tenant has opted out: by an annotation on its namespace kube-system.
func takesCare(ctx context.Context, tenant dynamic.Interface) (bool, error) {
	ns, err := tenant.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return ns.GetAnnotations()[names.DNS] == names.DNSUnmanaged, nil
}

// Ensure brings the DNS of a cluster to what it should be.
func Ensure(ctx context.Context, cluster dynamic.Interface, s Settings) error {
	objects, err := render(s)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := ensureObject(ctx, cluster, obj); err != nil {
			return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// ensureObject applies an object that is not as it was applied last. What users are meant to change, such as the configuration, is
// made when it is missing and left alone afterwards.
func ensureObject(ctx context.Context, cluster dynamic.Interface, obj *unstructured.Unstructured) error {
	plural, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	objects := dynamic.ResourceInterface(cluster.Resource(plural))
	if obj.GetNamespace() != "" {
		objects = cluster.Resource(plural).Namespace(obj.GetNamespace())
	}
	version := versionOf(obj)
	switch have, err := objects.Get(ctx, obj.GetName(), metav1.GetOptions{}); {
	case err == nil && (obj.GetKind() == "ConfigMap" || have.GetAnnotations()[names.Applied] == version):
		return nil
	case client.IgnoreNotFound(err) != nil:
		return err
	}
	obj.SetAnnotations(map[string]string{names.Applied: version})
	_, err := objects.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldOwner, Force: true})
	return err
}

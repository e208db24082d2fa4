// Package addons keeps in place what a tenant's cluster has beside what the
// tenant runs in it, such as DNS: objects in the tenant's own cluster, which
// come back when they are deleted, unless the tenant opts out.
package addons

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/tenanthttp"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const (
	// fieldOwner owns what is applied.
	fieldOwner = "vc-manager"
	// interval is how often a tenant's addons are reconciled: they are not
	// watched.
	interval = 30 * time.Second
	// workers is how many tenants are worked on at a time. One whose apiserver
	// hangs holds a worker until the timeout, and is retried after a backoff
	// that doubles: a hundred of them delay a new tenant by four timeouts,
	// once.
	workers = 32
	// timeout bounds a reconcile of one tenant. Objects that it has applied are
	// not applied again by the next.
	timeout = 10 * time.Second
)

// Addon is something that is kept in place in tenants' clusters.
type Addon struct {
	// Name is what it is called in errors.
	Name string
	// OptOut is the annotation on a tenant's namespace kube-system by which the
	// tenant, with the value names.Unmanaged, takes care of it.
	OptOut string
	// Objects are those that a tenant is to have, in the order in which they
	// are made; none if it has no such addon.
	Objects func(*tenancyv1alpha1.VirtualCluster) ([]*unstructured.Unstructured, error)
	// Applies reports whether a tenant with a value of the annotation OptOut is to
	// have the addon; nil for all values.
	Applies func(choice string) bool
	// Network: the addon is only for tenants whose apiservers reach the network
	// of the super cluster.
	Network bool
	// Retired: the objects are not ensured any more, and existing ones are
	// deleted. Of these, only the names matter.
	Retired bool
}

// Reconciler keeps the addons of tenants in place.
type Reconciler struct {
	// Client reads from the manager's cache.
	Client client.Client
	Addons []Addon
	// Capabilities returns those of a tenant's provisioner.
	Capabilities func(*tenancyv1alpha1.VirtualCluster) provisioner.Capabilities
}

// SetupWithManager adds the reconciler to a manager whose cache has the Secrets
// with the admin kubeconfigs.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("addons").
		For(&tenancyv1alpha1.VirtualCluster{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, ReconciliationTimeout: timeout}).
		Complete(r)
}

// Reconcile ensures the addons of one tenant, and requeues.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, vc); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !vc.DeletionTimestamp.IsZero() || !isReady(vc) {
		return reconcile.Result{}, nil // a change leads here again
	}
	wanted, err := r.wanted(vc)
	if len(wanted) > 0 {
		err = errors.Join(err, r.ensure(ctx, vc, wanted))
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("addons of VirtualCluster %s: %w", req, err)
	}
	if !slices.ContainsFunc(wanted, func(addon filled) bool { return !addon.Retired }) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: wait.Jitter(interval, 0.2)}, nil
}

// isReady reports whether the tenant's apiserver serves. One that sleeps is
// left asleep.
func isReady(vc *tenancyv1alpha1.VirtualCluster) bool {
	return meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady) &&
		!meta.IsStatusConditionFalse(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake)
}

// filled is an addon with the objects that a tenant is to have of it.
type filled struct {
	Addon

	objects []*unstructured.Unstructured
}

// wanted are the addons that a tenant is to have. One that cannot be made holds
// up no other.
func (r *Reconciler) wanted(vc *tenancyv1alpha1.VirtualCluster) (wanted []filled, err error) {
	can := r.Capabilities(vc)
	if can.Converted { // its cluster is the super cluster, which has all of it
		return nil, nil
	}
	for _, addon := range r.Addons {
		if addon.Network && !can.Network {
			continue
		}
		objects, failed := addon.Objects(vc)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", addon.Name, failed))
		} else if len(objects) > 0 {
			wanted = append(wanted, filled{addon, objects})
		}
	}
	return wanted, err
}

// ensure applies a tenant's addons, except those that the tenant manages
// itself.
func (r *Reconciler) ensure(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, wanted []filled) error {
	tenant, closeTenant, err := r.connect(ctx, vc)
	if err != nil {
		return err
	}
	defer closeTenant()
	system, err := tenant.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get namespace %s: %w", metav1.NamespaceSystem, err)
	}
	var errs []error
	for _, addon := range wanted {
		choice := system.GetAnnotations()[addon.OptOut]
		if choice == names.Unmanaged || addon.Applies != nil && !addon.Applies(choice) {
			continue
		}
		bring := ensureFor
		if addon.Retired {
			bring = retire
		}
		if err := bring(ctx, tenant, addon); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", addon.Name, err))
		}
	}
	return errors.Join(errs...)
}

// connect makes a client of a tenant for this once, and what closes its
// connections.
func (r *Reconciler) connect(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (dynamic.Interface, func(), error) {
	key := types.NamespacedName{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret}
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, key, secret); err != nil {
		return nil, nil, fmt.Errorf("get Secret %s: %w", key, err)
	}
	config, err := kubeconfig.RESTConfig(names.PlatformKubeconfig(secret.Data))
	if err != nil {
		return nil, nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	config.UserAgent = fieldOwner
	ctx, closeTenant := context.WithCancel(ctx)
	httpClient, err := tenanthttp.NewClient(ctx, config, tenanthttp.Options{Limits: tenanthttp.DefaultLimits(), Untrusted: true})
	if err != nil {
		closeTenant()
		return nil, nil, fmt.Errorf("set up a client: %w", err)
	}
	tenant, err := dynamic.NewForConfigAndClient(config, httpClient)
	return tenant, closeTenant, err
}

package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/members"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
	"github.com/virtualcluster/virtualcluster/internal/alias"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// It reads the Secrets that vc-manager writes for it, and no others.
//
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=virtualclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=gateway-access,verbs=list;watch
// +kubebuilder:rbac:groups="",namespace=vc-system,resources=secrets,resourceNames=vc-gateway-tls,verbs=create;get;list;patch;update;watch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// reconciler keeps the index of tenants.
type reconciler struct {
	client.Reader // a cache

	index        *tenants.Index
	dialExternal egress.Dial
	// converter makes what serves those that are converted.
	converter *converter
	// byAlias has the cache indexed by aliases.
	byAlias func() error
}

// addReconciler adds the reconciler that keeps the index of tenants.
func addReconciler(mgr manager.Manager, options Options, index *tenants.Index, converter *converter) error {
	external, err := egress.NewExternal(options.External, options.Internal)
	if err != nil {
		return err
	}
	r := &reconciler{Reader: mgr.GetClient(), index: index, dialExternal: external.Dial, converter: converter}
	if err := r.setup(mgr); err != nil {
		return fmt.Errorf("set up the reconciler of tenants: %w", err)
	}
	return nil
}

func (r *reconciler) setup(mgr manager.Manager) error {
	// At the first reconcile: before it, the CRDs may not be installed.
	r.byAlias = sync.OnceValue(func() error { return alias.Index(context.Background(), mgr.GetFieldIndexer()) })
	return builder.ControllerManagedBy(mgr).Named("tenants").
		For(&tenancyv1alpha1.VirtualCluster{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(ownerOf)).
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		Complete(r)
}

// ownerOf leads from the Secret of a tenant to its VirtualCluster.
func ownerOf(_ context.Context, secret client.Object) []reconcile.Request {
	owner := names.OwnerKey(secret.GetLabels())
	if owner.Namespace == "" || owner.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: owner}}
}

// Reconcile adds the tenant of a VirtualCluster to the index, or removes it.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.Get(ctx, req.NamespacedName, vc); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("get VirtualCluster %s: %w", req.NamespacedName, err)
	}
	if err := r.findHolders(ctx, req.NamespacedName, vc.Spec.Alias); err != nil {
		return reconcile.Result{}, err
	}
	secret, err := r.secretOf(ctx, vc)
	if err != nil {
		return reconcile.Result{}, err
	}
	if secret == nil {
		r.index.Remove(req.NamespacedName)
		r.converter.conversion.tenants.Remove(r.converter.admission.remove(req.NamespacedName))
		return reconcile.Result{}, nil
	}
	access := accessOf(vc, secret)
	tenant, err := tenants.New(vc.Status.ClusterNamespace, access, r.dialExternal, isDown(vc))
	if err != nil {
		r.index.Remove(req.NamespacedName)
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("read Secret %s: %w", client.ObjectKeyFromObject(secret), err))
	}
	tenant.Members = members.FromSpec(vc)
	if access.IsConverted() {
		err = r.convert(ctx, vc, access, tenant)
	}
	if err == nil || errors.Is(err, errNotFollowing) {
		r.index.Set(req.NamespacedName, tenant)
	}
	return reconcile.Result{}, err
}

// convert sets what serves a converted tenant. Until that is there, the tenant is
// down: its clients try again.
func (r *reconciler) convert(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, access gatewayaccess.Access, t *tenants.Tenant,
) error {
	served, err := r.converter.handler(ctx, vc, access)
	if err != nil {
		t.Down = true
		return fmt.Errorf("serve converted VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
	}
	t.Converted, t.Accounts = served, r.converter.accounts(vc)
	return nil
}

// findHolders finds out which VirtualClusters have the alias of one, and those
// that it had. It reads the cache, which has all VirtualClusters before the
// first reconcile: the order of reconciles decides nothing.
func (r *reconciler) findHolders(ctx context.Context, of types.NamespacedName, current string) error {
	aliases := r.index.AliasesOf(of)
	if current != "" {
		aliases = append(aliases, current)
	}
	if len(aliases) == 0 {
		return nil
	}
	if err := r.byAlias(); err != nil {
		return err
	}
	for _, each := range aliases {
		holder, err := alias.Holder(ctx, r.Reader, each)
		if err != nil {
			return err
		}
		var has *types.NamespacedName
		if holder != nil {
			has = new(client.ObjectKeyFromObject(holder))
		}
		r.index.SetHolder(each, has)
	}
	return nil
}

// secretOf returns the Secret with what the gateway needs of a tenant; nil if
// there is none where vc-manager writes it. Copies of Secrets of tenants, which
// can have the same name, are in other namespaces.
func (r *reconciler) secretOf(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (*corev1.Secret, error) {
	if vc.Status.ClusterNamespace == "" || !vc.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: vc.Status.ClusterNamespace, Name: names.GatewaySecret}
	if err := r.Get(ctx, key, secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if secret.Annotations[names.VCUID] != string(vc.UID) {
		return nil, nil
	}
	return secret, nil
}

// accessOf returns what the gateway needs of a control plane. One that sleeps
// still has the documents of an issuer that was removed from the spec.
func accessOf(vc *tenancyv1alpha1.VirtualCluster, secret *corev1.Secret) gatewayaccess.Access {
	access := gatewayaccess.Read(secret.Data)
	if vc.Spec.ControlPlane == nil || vc.Spec.ControlPlane.ServiceAccountIssuer == "" {
		return access.WithoutIssuer()
	}
	return access
}

// isDown reports whether no request can reach the control plane. One that sleeps
// is ready, since a request wakes it.
func isDown(vc *tenancyv1alpha1.VirtualCluster) bool {
	ready := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady)
	return vc.Status.Phase == tenancyv1alpha1.PhasePaused || ready != nil && ready.Status == metav1.ConditionFalse
}

// Package nestedcluster shows Cluster API how the super cluster serves the
// VirtualCluster of a Cluster. It creates nothing: the VirtualCluster is made
// with the control plane, from the spec of both.
package nestedcluster

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/cluster-api/util/predicates"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	infrav1 "github.com/virtualcluster/virtualcluster/capi/apis/infrastructure/v1alpha1"
	"github.com/virtualcluster/virtualcluster/capi/controllers/tenant"
)

const workers = 10

// Reconciler reconciles NestedClusters.
type Reconciler struct {
	// Client reads from the manager's cache.
	Client client.Client
	// WatchFilter is the value of the label that selects objects; empty for all.
	WatchFilter string
}

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=nestedclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=nestedclusters/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=virtualclusters,verbs=get;list;watch

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	filter := predicates.ResourceHasFilterLabel(mgr.GetScheme(), mgr.GetLogger(), r.WatchFilter)
	external := predicates.ResourceIsNotExternallyManaged(mgr.GetScheme(), mgr.GetLogger())
	named := handler.EnqueueRequestsFromMapFunc(r.ofCluster)
	return builder.ControllerManagedBy(mgr).
		Named("nestedcluster").
		For(&infrav1.NestedCluster{}, builder.WithPredicates(filter, external)).
		Watches(&clusterv1.Cluster{}, named).
		Watches(&tenancyv1alpha1.VirtualCluster{}, named).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// ofCluster returns the NestedCluster of a Cluster, or of the VirtualCluster of
// the same name.
func (r *Reconciler) ofCluster(ctx context.Context, object client.Object) []reconcile.Request {
	list := &infrav1.NestedClusterList{}
	label := client.MatchingLabels{clusterv1.ClusterNameLabel: object.GetName()}
	if err := r.Client.List(ctx, list, client.InNamespace(object.GetNamespace()), label); err != nil {
		return nil // from a cache that has synced
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// Reconcile does one round for the NestedCluster of the request.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	infrastructure := &infrav1.NestedCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, infrastructure); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cluster, err := util.GetOwnerCluster(ctx, r.Client, infrastructure.ObjectMeta)
	// Without an owner, an event follows when Cluster API sets it.
	if err != nil || cluster == nil || annotations.IsExternallyManaged(infrastructure) || !infrastructure.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if isPaused, patched, err := paused.EnsurePausedCondition(ctx, r.Client, cluster, infrastructure); err != nil || isPaused || patched {
		return reconcile.Result{}, err
	}
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.Client.Get(ctx, tenant.Key(cluster), vc); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	helper, err := patch.NewHelper(infrastructure, r.Client)
	if err != nil {
		return reconcile.Result{}, err
	}
	observe(infrastructure, vc)
	err = helper.Patch(ctx, infrastructure, patch.WithOwnedConditions{Conditions: []string{clusterv1.ReadyCondition}})
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// observe writes what the VirtualCluster reports. One that does not belong to
// the Cluster, or does not exist, reports nothing.
func observe(infrastructure *infrav1.NestedCluster, vc *tenancyv1alpha1.VirtualCluster) {
	ready := metav1.Condition{
		Type: clusterv1.ReadyCondition, Status: metav1.ConditionFalse,
		Reason: clusterv1.NotReadyReason, Message: "The syncer has not reported on the VirtualCluster yet",
	}
	if tenant.Belongs(vc) {
		if vc.Status.ClusterNamespace != "" {
			infrastructure.Status.ClusterNamespace = vc.Status.ClusterNamespace
			infrastructure.Status.Initialization.Provisioned = new(true)
		}
		if syncing := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing); syncing != nil {
			ready.Status, ready.Reason, ready.Message = syncing.Status, syncing.Reason, syncing.Message
		}
	}
	conditions.Set(infrastructure, ready)
}

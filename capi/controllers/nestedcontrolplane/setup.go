package nestedcontrolplane

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/predicates"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
	infrav1 "github.com/virtualcluster/virtualcluster/capi/apis/infrastructure/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const (
	workers = 10
	// timeout of one reconcile. It makes a handful of requests and waits for
	// nothing else.
	timeout = 30 * time.Second
	// firstRetry and lastRetry bound the backoff after errors.
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Minute
)

// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=nestedcontrolplanes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=nestedcontrolplanes/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=nestedclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=virtualclusters,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=admin-kubeconfig,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch

// SetupWithManager adds the reconciler to a manager. Of all Secrets, the
// manager's cache has to hold only those that vc-manager writes.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	filter := predicates.ResourceHasFilterLabel(mgr.GetScheme(), mgr.GetLogger(), r.WatchFilter)
	named := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		return r.ofCluster(ctx, object.GetNamespace(), object.GetName())
	})
	labelled := func(namespace func(client.Object) string, label string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
			return r.ofCluster(ctx, namespace(object), object.GetLabels()[label])
		})
	}
	own, owners := client.Object.GetNamespace, func(object client.Object) string { return object.GetLabels()[names.VCNamespace] }
	return builder.ControllerManagedBy(mgr).
		Named("nestedcontrolplane").
		For(&controlplanev1.NestedControlPlane{}, builder.WithPredicates(filter)).
		Watches(&clusterv1.Cluster{}, named).
		Watches(&tenancyv1alpha1.VirtualCluster{}, named).
		Watches(&infrav1.NestedCluster{}, labelled(own, clusterv1.ClusterNameLabel)).
		Watches(&corev1.Secret{}, labelled(owners, names.VCName)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   timeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// ofCluster returns the NestedControlPlanes of a Cluster, by the label that
// Cluster API sets.
func (r *Reconciler) ofCluster(ctx context.Context, namespace, cluster string) []reconcile.Request {
	if namespace == "" || cluster == "" {
		return nil
	}
	list := &controlplanev1.NestedControlPlaneList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}); err != nil {
		return nil // from a cache that has synced
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

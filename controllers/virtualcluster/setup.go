package virtualcluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const (
	workers = 10
	// timeout of one reconcile. It makes a handful of requests and waits for
	// nothing else.
	timeout = 30 * time.Second
	// firstRetry and lastRetry bound the backoff after errors that may pass by
	// themselves.
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Minute
)

// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=virtualclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=virtualclusters/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=deletecollection
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=admin-kubeconfig,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=kubelet-client-ca,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the reconciler to a manager whose cache has CachedObjects.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	b := builder.ControllerManagedBy(mgr).
		Named("virtualcluster").
		For(&tenancyv1alpha1.VirtualCluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: concerns})).
		Watches(&tenancyv1alpha1.VirtualCluster{}, handler.EnqueueRequestsFromMapFunc(r.sameAlias), changesHolders()).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(OwnerOf)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(OwnerOf)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(OwnerOf)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   timeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		})
	if r.Gateway.CAFile != "" {
		b = b.WatchesRawSource(source.Func(r.followGatewayCA))
	}
	for _, way := range r.Provisioners {
		if notifier, ok := way.(provisioner.Notifier); ok {
			b = b.WatchesRawSource(source.TypedChannel(notifier.Events(),
				&handler.TypedEnqueueRequestForObject[*tenancyv1alpha1.VirtualCluster]{}))
		}
		if watcher, ok := way.(provisioner.Watcher); ok {
			for _, source := range watcher.Sources() {
				b = b.WatchesRawSource(source)
			}
		}
	}
	return b.Complete(r)
}

// CachedObjects is what of the super cluster the reconciler's cache holds: the
// tenants' namespaces, and of all Secrets and ConfigMaps those that it makes.
// The tenants' own are none of the manager's business.
func CachedObjects() (map[client.Object]cache.ByObject, error) {
	labelled, err := labels.NewRequirement(names.VCName, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	ours := labels.NewSelector().Add(*labelled)
	return map[client.Object]cache.ByObject{
		&corev1.Namespace{}: {Label: ours},
		&corev1.Secret{}: {
			Label: ours,
			Field: fields.OneTermEqualSelector(metav1.ObjectNameField, names.AdminKubeconfigSecret),
		},
		&corev1.ConfigMap{}: {
			Label: ours,
			Field: fields.OneTermEqualSelector(metav1.ObjectNameField, names.KubeletClientCAConfigMap),
		},
	}, nil
}

// OwnerOf leads from a labelled object to its VirtualCluster.
func OwnerOf(_ context.Context, object client.Object) []reconcile.Request {
	key := names.OwnerKey(object.GetLabels())
	if key.Namespace == "" || key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// concerns reports whether an update is more than the echo of the controller's
// own status.
func concerns(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*tenancyv1alpha1.VirtualCluster)
	after, ok2 := e.ObjectNew.(*tenancyv1alpha1.VirtualCluster)
	if !ok || !ok2 {
		return true
	}
	return before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) ||
		!equality.Semantic.DeepEqual(syncing(before), syncing(after))
}

// syncing is the syncer's condition on a VirtualCluster, or nil.
func syncing(vc *tenancyv1alpha1.VirtualCluster) *metav1.Condition {
	return meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing)
}

package host

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	contract "github.com/virtualcluster/virtualcluster/controllers/provisioner"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const (
	workers = 10
	// timeout of one reconcile, which waits for no control plane.
	timeout = 30 * time.Second
	// deletionRetry is when to look again at a deletion, in case the event of its
	// end is lost.
	deletionRetry = 2 * time.Second

	// storeField is the index of HostedControlPlanes by their store.
	storeField = "spec.store"
)

// controlPlanes runs the control planes of HostedControlPlanes.
type controlPlanes struct {
	client.Client

	live   client.Reader
	stores *stores
	// replica is the name of this process.
	replica string
	// serves reports whether this process runs a control plane, as one of several.
	serves func(types.NamespacedName) bool
}

func (r *controlPlanes) setUp(ctx context.Context, mgr manager.Manager) error {
	byStore := func(object client.Object) []string {
		plane, _ := object.(*tenancyv1alpha1.HostedControlPlane)
		return []string{plane.Spec.Store}
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &tenancyv1alpha1.HostedControlPlane{}, storeField, byStore); err != nil {
		return fmt.Errorf("index HostedControlPlanes by store: %w", err)
	}
	ofVirtualCluster := handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, vc *tenancyv1alpha1.VirtualCluster) []reconcile.Request {
			return []reconcile.Request{requestFor(names.ClusterKey(vc.Namespace, vc.Name, vc.UID))}
		})
	return builder.ControllerManagedBy(mgr).
		Named("hostedcontrolplane").
		For(&tenancyv1alpha1.HostedControlPlane{}).
		WatchesRawSource(source.Kind(mgr.GetCache(), &tenancyv1alpha1.VirtualCluster{}, ofVirtualCluster)).
		WatchesRawSource(source.TypedChannel(r.stores.changed, ofVirtualCluster)).
		Watches(&tenancyv1alpha1.ControlPlaneStore{}, handler.EnqueueRequestsFromMapFunc(r.ofStore)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   timeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

func requestFor(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: tenancyv1alpha1.HostedControlPlaneName}}
}

// ofStore returns the control planes of a store whose health may have changed.
func (r *controlPlanes) ofStore(ctx context.Context, object client.Object) []reconcile.Request {
	all := &tenancyv1alpha1.HostedControlPlaneList{}
	if err := r.List(ctx, all, client.MatchingFields{storeField: object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has stopped
	}
	requests := make([]reconcile.Request, 0, len(all.Items))
	for i := range all.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
	}
	return requests
}

// Reconcile brings one control plane to what its VirtualCluster says.
func (r *controlPlanes) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	plane := &tenancyv1alpha1.HostedControlPlane{}
	if err := r.Get(ctx, req.NamespacedName, plane); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.serves(req.NamespacedName) {
		return reconcile.Result{}, nil
	}
	if !plane.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, plane)
	}
	vc, err := r.virtualClusterOf(ctx, plane)
	if vc == nil || err != nil {
		return reconcile.Result{}, err
	}
	state, ensureErr := r.ensure(ctx, plane, vc)
	if err := r.writeStatus(ctx, plane, vc.Generation, state, ensureErr); err != nil {
		return reconcile.Result{}, err
	}
	if ensureErr != nil && contract.AsFailure(ensureErr) == nil {
		return reconcile.Result{}, fmt.Errorf("HostedControlPlane of namespace %s: %w", plane.Namespace, ensureErr)
	}
	return reconcile.Result{RequeueAfter: state.RecheckAfter}, nil
}

// virtualClusterOf returns the VirtualCluster of a control plane; nil if it is
// gone, or if the manager has not written down which namespace and which
// addresses it has.
func (r *controlPlanes) virtualClusterOf(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane,
) (*tenancyv1alpha1.VirtualCluster, error) {
	of := plane.Spec.VirtualCluster
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, vc); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if vc.UID != of.UID || vc.Status.ClusterNamespace != plane.Namespace ||
		names.ClusterKey(of.Namespace, of.Name, of.UID) != plane.Namespace {
		return nil, nil
	}
	return vc, nil
}

// ensure runs the control plane and publishes how clients reach it.
func (r *controlPlanes) ensure(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, vc *tenancyv1alpha1.VirtualCluster,
) (contract.ControlPlane, error) {
	in, ok := r.stores.get(plane.Spec.Store)
	if !ok {
		return contract.ControlPlane{}, contract.Failf(tenancyv1alpha1.ReasonStoreUnreachable,
			"the replica is not connected to ControlPlaneStore %s: see its conditions", plane.Spec.Store)
	}
	state, err := in.planes.Ensure(ctx, vc)
	if err != nil || !state.Ready {
		return state, err
	}
	return state, r.publishClients(ctx, plane, state)
}

func (r *controlPlanes) writeStatus(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, generation int64, state contract.ControlPlane, failed error,
) error {
	before := plane.DeepCopy()
	report(&plane.Status, r.replica, generation, state, failed)
	if equality.Semantic.DeepEqual(before.Status, plane.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, plane, client.MergeFrom(before), client.FieldOwner(name)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of the HostedControlPlane of namespace %s: %w", plane.Namespace, err)
	}
	return nil
}

// finalize deletes the data and the keys of a control plane, and lets its object
// go.
func (r *controlPlanes) finalize(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(plane, tenancyv1alpha1.HostedControlPlaneFinalizer) {
		return reconcile.Result{}, nil
	}
	in, ok := r.stores.get(plane.Spec.Store)
	if !ok {
		return reconcile.Result{}, r.writeStatus(ctx, plane, 0, contract.ControlPlane{}, contract.Failf(tenancyv1alpha1.ReasonStoreUnreachable,
			"the data cannot be deleted, since the replica is not connected to ControlPlaneStore %s: see its conditions; if the store "+
				"is lost, remove the finalizer of this object", plane.Spec.Store))
	}
	gone, err := in.planes.Delete(ctx, stubOf(plane))
	if err != nil || !gone {
		return reconcile.Result{RequeueAfter: deletionRetry}, err
	}
	if err := r.deleteClients(ctx, plane); err != nil {
		return reconcile.Result{}, err
	}
	before := plane.DeepCopy()
	controllerutil.RemoveFinalizer(plane, tenancyv1alpha1.HostedControlPlaneFinalizer)
	err = r.Patch(ctx, plane, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(name))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: firstRetry}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// stubOf returns what it takes of a VirtualCluster, which may be gone, to delete
// its control plane.
func stubOf(plane *tenancyv1alpha1.HostedControlPlane) *tenancyv1alpha1.VirtualCluster {
	of := plane.Spec.VirtualCluster
	return &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name, UID: of.UID},
		Status:     tenancyv1alpha1.VirtualClusterStatus{ClusterNamespace: plane.Namespace},
	}
}

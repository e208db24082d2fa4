package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const (
	workers = 10
	// timeout of one reconcile, which waits for no control plane.
	timeout = 30 * time.Second
	// deletionRetry is when to check a deletion again, in case the event of its
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
	// replica is the name of this process, and address is where it accepts
	// connections of others.
	replica, address string
	division         *division
	// platform has the names that no control plane has.
	platform platformNames
	moves    *moves
	log      logr.Logger
	// requests has control planes reconciled.
	requests chan event.TypedGenericEvent[*tenancyv1alpha1.HostedControlPlane]
}

func (r *controlPlanes) setUp(ctx context.Context, mgr manager.Manager) error {
	byStore := func(object client.Object) []string {
		plane, _ := object.(*tenancyv1alpha1.HostedControlPlane)
		return []string{plane.Spec.Store}
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &tenancyv1alpha1.HostedControlPlane{}, storeField, byStore); err != nil {
		return fmt.Errorf("index HostedControlPlanes by store: %w", err)
	}
	if err := r.indexNames(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
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
		WatchesRawSource(source.TypedChannel(r.requests, &handler.TypedEnqueueRequestForObject[*tenancyv1alpha1.HostedControlPlane]{})).
		Watches(&tenancyv1alpha1.HostedControlPlane{}, handler.EnqueueRequestsFromMapFunc(r.rivals)).
		Watches(&tenancyv1alpha1.ControlPlaneStore{}, handler.EnqueueRequestsFromMapFunc(r.ofStore)).
		WithOptions(controllerOptions(workers, timeout)).
		Complete(r)
}

func requestFor(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: tenancyv1alpha1.HostedControlPlaneName}}
}

// requestAll requests reconciles of all control planes.
func (r *controlPlanes) requestAll(ctx context.Context) error {
	all := &tenancyv1alpha1.HostedControlPlaneList{}
	if err := r.List(ctx, all); err != nil {
		return fmt.Errorf("list HostedControlPlanes: %w", err)
	}
	for i := range all.Items {
		select {
		case r.requests <- event.TypedGenericEvent[*tenancyv1alpha1.HostedControlPlane]{Object: &all.Items[i]}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// handOver stops what of a control plane may run in one replica at a time.
func (r *controlPlanes) handOver(ctx context.Context, key types.NamespacedName) error {
	if err := r.moves.stop(ctx, key); err != nil {
		return err
	}
	for _, in := range r.stores.all() {
		if err := in.planes.HandOver(ctx, key.Namespace); err != nil {
			return err
		}
	}
	return nil
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
	switch err := r.Get(ctx, req.NamespacedName, plane); {
	case apierrors.IsNotFound(err):
		r.division.forget(req.NamespacedName)
		// It runs if its finalizer was removed by hand.
		err := r.handOver(ctx, req.NamespacedName)
		r.stores.retire(req.Namespace)
		return reconcile.Result{}, err
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("get the HostedControlPlane of namespace %s: %w", req.Namespace, err)
	}
	ctx, leave, ok := r.division.enter(ctx, req.NamespacedName)
	if !ok {
		if plane.Status.Host != r.replica && isServed(plane) {
			r.division.handovers.end(req.NamespacedName, resultTakenOver, time.Now())
			r.stores.retire(plane.Namespace)
		}
		return reconcile.Result{}, nil
	}
	defer leave()
	return r.reconcile(ctx, plane)
}

// isServed reports whether a control plane is ready in a replica, or sleeps in one.
func isServed(plane *tenancyv1alpha1.HostedControlPlane) bool {
	return meta.IsStatusConditionTrue(plane.Status.Conditions, tenancyv1alpha1.ConditionReady) ||
		meta.IsStatusConditionFalse(plane.Status.Conditions, tenancyv1alpha1.ConditionAwake)
}

// reconcile reconciles a control plane that is for this replica.
func (r *controlPlanes) reconcile(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane) (reconcile.Result, error) {
	vc, err := r.virtualClusterOf(ctx, plane)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	// The data of a tenant that lives is not deleted, also if an admin deletes the object.
	case !plane.DeletionTimestamp.IsZero() && (vc == nil || !vc.DeletionTimestamp.IsZero()):
		return r.finalize(ctx, plane)
	case vc == nil || !isPlaced(vc, plane):
		return reconcile.Result{}, nil
	}
	runs, again, err := r.placeData(ctx, plane, vc)
	if err != nil || !runs {
		return reconcile.Result{RequeueAfter: again}, err
	}
	extra, err := r.sansOf(ctx, plane, vc)
	if err != nil {
		return reconcile.Result{}, err
	}
	state, ensureErr := r.ensure(ctx, plane, vc, extra)
	switch err := r.writeStatus(ctx, plane, vc.Generation, state, ensureErr, extra); {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: firstRetry}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	if ensureErr != nil && contract.AsFailure(ensureErr) == nil {
		return reconcile.Result{}, fmt.Errorf("HostedControlPlane of namespace %s: %w", plane.Namespace, ensureErr)
	}
	return reconcile.Result{RequeueAfter: earliest(state.RecheckAfter, again)}, nil
}

// earliest returns the shorter of two delays, of which 0 is none.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// placeData continues what there is to do with the data of a control plane, and
// reports whether the control plane is to run. It updates the object if its data
// has been moved, or is to be.
func (r *controlPlanes) placeData(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, vc *tenancyv1alpha1.VirtualCluster,
) (runs bool, again time.Duration, err error) {
	known := plane.Status.Store != ""
	if known && !isMoving(plane) && len(plane.Status.Remainders) == 0 && !r.moves.has(client.ObjectKeyFromObject(plane)) {
		return true, 0, nil
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(plane), plane); err != nil {
		return false, 0, client.IgnoreNotFound(err)
	}
	if plane.Status.Store == "" {
		if located, err := r.locate(ctx, plane, vc); err != nil || !located {
			return false, locateRetry, err
		}
	}
	if isMoving(plane) {
		if runs, again, err = r.advance(ctx, plane, vc); err != nil || !runs {
			return runs, again, err
		}
	} else {
		r.moves.settle(client.ObjectKeyFromObject(plane), true)
	}
	deletion, err := r.deleteRemainders(ctx, plane)
	return true, earliest(again, deletion), err
}

// virtualClusterOf returns the VirtualCluster of a control plane; nil if it is
// gone.
func (r *controlPlanes) virtualClusterOf(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane,
) (*tenancyv1alpha1.VirtualCluster, error) {
	of := plane.Spec.VirtualCluster
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, vc); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if vc.UID != of.UID {
		return nil, nil
	}
	return vc, nil
}

// isPlaced reports whether the manager has written down that a VirtualCluster has
// the namespace of the control plane, and with it which addresses it has.
func isPlaced(vc *tenancyv1alpha1.VirtualCluster, plane *tenancyv1alpha1.HostedControlPlane) bool {
	return vc.Status.ClusterNamespace == plane.Namespace && names.ClusterKey(vc.Namespace, vc.Name, vc.UID) == plane.Namespace
}

// ensure runs the control plane and publishes how clients reach it.
func (r *controlPlanes) ensure(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, vc *tenancyv1alpha1.VirtualCluster, extra sans,
) (contract.ControlPlane, error) {
	in, ok := r.stores.get(plane.DataStore())
	if !ok {
		return contract.ControlPlane{}, contract.Failf(tenancyv1alpha1.ReasonStoreUnreachable,
			"the replica is not connected to ControlPlaneStore %s: see its conditions", plane.DataStore())
	}
	state, err := in.planes.Ensure(ctx, withSANs(vc, extra.all))
	if err != nil || !state.Ready {
		return state, err
	}
	return state, r.publishClients(ctx, plane, state)
}

func (r *controlPlanes) writeStatus(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, generation int64, state contract.ControlPlane, failed error, extra sans,
) error {
	if isTakingOver(plane.Status, r.replica, state, failed) {
		return nil
	}
	before := plane.DeepCopy()
	plane.Status.Host, plane.Status.HostAddress = r.replica, r.address
	if state.Ready || state.IsAsleep() {
		r.endMove(plane, generation, state.Ready)
	}
	report(&plane.Status, generation, state, failed)
	plane.Status.ExtraSANs = extra.dnsNames
	reportSANs(&plane.Status, generation, extra.report)
	if equality.Semantic.DeepEqual(before.Status, plane.Status) {
		return nil
	}
	// The cache may not show how far a move is.
	lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Status().Patch(ctx, plane, lock, client.FieldOwner(name)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of the HostedControlPlane of namespace %s: %w", plane.Namespace, err)
	}
	return nil
}

// endMove records that a control plane serves after a move of its data, or sleeps.
func (r *controlPlanes) endMove(plane *tenancyv1alpha1.HostedControlPlane, generation int64, serves bool) {
	moved := plane.Status.Store == plane.Spec.Store
	if move := plane.Status.Move; move != nil {
		plane.Status.Move = nil
		if move.To != plane.Status.Store {
			leave(&plane.Status, move.To, metav1.Now())
		}
		if serves {
			r.moves.measure(client.ObjectKeyFromObject(plane), move.StartTime.Time, moved)
		}
		r.moves.settle(client.ObjectKeyFromObject(plane), moved)
	}
	if reported := meta.FindStatusCondition(plane.Status.Conditions, tenancyv1alpha1.ConditionMoved); reported != nil && moved {
		setCondition(&plane.Status.Conditions, generation, tenancyv1alpha1.ConditionMoved, true, tenancyv1alpha1.ReasonMoved,
			"The data is in ControlPlaneStore "+plane.Status.Store)
	}
}

// finalize deletes the data and the keys of a control plane, and lets its object
// go.
func (r *controlPlanes) finalize(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(plane, tenancyv1alpha1.HostedControlPlaneFinalizer) {
		return reconcile.Result{}, nil
	}
	if err := r.moves.stop(ctx, client.ObjectKeyFromObject(plane)); err != nil {
		return reconcile.Result{}, err
	}
	in, ok := r.stores.get(plane.DataStore())
	if !ok {
		return reconcile.Result{}, r.writeStatus(ctx, plane, 0, contract.ControlPlane{}, contract.Failf(tenancyv1alpha1.ReasonStoreUnreachable,
			"the data cannot be deleted, since the replica is not connected to ControlPlaneStore %s: see its conditions; if the store "+
				"is lost, remove the finalizer of this object", plane.DataStore()), sans{})
	}
	if err := r.deleteElsewhere(ctx, plane); err != nil {
		return reconcile.Result{}, errors.Join(err, r.writeStatus(ctx, plane, 0, contract.ControlPlane{}, err, sans{}))
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

// deleteElsewhere deletes what moves have left in other stores than the one with
// the data: in any, if the status does not say which one that is. A store that is not
// connected keeps it, and reports it.
func (r *controlPlanes) deleteElsewhere(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane) error {
	stores := leftovers(plane)
	if plane.Status.Store == "" {
		stores = r.stores.names()
	}
	for _, each := range stores {
		in, connected := r.stores.get(each)
		if !connected {
			continue
		}
		if err := in.host.DeleteData(ctx, plane.Namespace); err != nil {
			return contract.Failf(tenancyv1alpha1.ReasonStoreUnreachable,
				"what a move has left in ControlPlaneStore %s cannot be deleted: %v; if the store is lost, delete the ControlPlaneStore", each, err)
		}
	}
	return nil
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

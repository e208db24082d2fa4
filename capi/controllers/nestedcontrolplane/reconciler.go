// Package nestedcontrolplane makes the VirtualCluster of a Cluster, follows it,
// and deletes it.
package nestedcontrolplane

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
)

const (
	// conflictRetry is when to reconcile again after the cache turned out to be
	// stale.
	conflictRetry = 50 * time.Millisecond
	// checkInterval is when to check the kubeconfig Secret again. It is not
	// watched: that would take the permission to read all Secrets of a
	// management cluster.
	checkInterval = 5 * time.Minute
)

// Reconciler reconciles NestedControlPlanes.
type Reconciler struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Live reads around the cache, where a stale answer could lose a tenant.
	Live client.Reader
	// WatchFilter is the value of the label that selects objects; empty for all.
	WatchFilter string
}

// scope is what one reconcile is about.
type scope struct {
	controlPlane *controlplanev1.NestedControlPlane
	// cluster owns the control plane; nil if it is gone.
	cluster *clusterv1.Cluster
	// virtualCluster belongs to the control plane; nil if there is none.
	virtualCluster *tenancyv1alpha1.VirtualCluster
}

// Reconcile does one round for the NestedControlPlane of the request.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s := &scope{controlPlane: &controlplanev1.NestedControlPlane{}}
	if err := r.Client.Get(ctx, req.NamespacedName, s.controlPlane); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var err error
	if s.cluster, err = util.GetOwnerCluster(ctx, r.Client, s.controlPlane.ObjectMeta); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	deleting := !s.controlPlane.DeletionTimestamp.IsZero()
	if s.cluster == nil && !deleting {
		return reconcile.Result{}, nil // an event follows when Cluster API sets the owner
	}
	if isPaused, patched, err := paused.EnsurePausedCondition(ctx, r.Client, s.cluster, s.controlPlane); err != nil || isPaused || patched {
		return reconcile.Result{}, err
	}
	if !deleting {
		if added, err := finalizers.EnsureFinalizer(ctx, r.Client, s.controlPlane, controlplanev1.Finalizer); err != nil || added {
			return reconcile.Result{}, err
		}
	}
	result, err := r.reconcile(ctx, s)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return result, err
}

// reconcile acts, and writes what it has reached.
func (r *Reconciler) reconcile(ctx context.Context, s *scope) (reconcile.Result, error) {
	helper, err := patch.NewHelper(s.controlPlane, r.Client)
	if err != nil {
		return reconcile.Result{}, err
	}
	phases := r.ensure
	if !s.controlPlane.DeletionTimestamp.IsZero() {
		phases = r.finalize
	}
	result, err := phases(ctx, s)
	patchErr := helper.Patch(ctx, s.controlPlane, patch.WithOwnedConditions{Conditions: []string{
		controlplanev1.ConditionAvailable, controlplanev1.ConditionVirtualClusterUpToDate,
		controlplanev1.ConditionKubeconfigAvailable, controlplanev1.ConditionDeleting,
	}})
	// The finalizer may have been the last.
	return result, errors.Join(err, kerrors.FilterOut(patchErr, apierrors.IsNotFound))
}

// ensure makes the VirtualCluster, and shows Cluster API what has become of it.
func (r *Reconciler) ensure(ctx context.Context, s *scope) (reconcile.Result, error) {
	err := r.ensureVirtualCluster(ctx, s)
	report(s.controlPlane, controlplanev1.ConditionVirtualClusterUpToDate, controlplanev1.ReasonUpToDate, err)
	observe(s)
	kubeconfigErr := r.ensureKubeconfig(ctx, s)
	report(s.controlPlane, controlplanev1.ConditionKubeconfigAvailable, controlplanev1.ReasonAvailable, kubeconfigErr)
	initialize(s.controlPlane)
	return reconcile.Result{RequeueAfter: checkInterval}, errors.Join(retriable(err), retriable(kubeconfigErr))
}

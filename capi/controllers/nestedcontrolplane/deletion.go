package nestedcontrolplane

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
	"github.com/virtualcluster/virtualcluster/capi/controllers/tenant"
)

// finalize deletes the VirtualCluster, and removes the finalizer when it is
// gone.
func (r *Reconciler) finalize(ctx context.Context, s *scope) (reconcile.Result, error) {
	vc, err := r.ownVirtualCluster(ctx, s.controlPlane)
	if err != nil {
		return reconcile.Result{}, err
	}
	if vc == nil {
		controllerutil.RemoveFinalizer(s.controlPlane, controlplanev1.Finalizer)
		return reconcile.Result{}, nil
	}
	available(s.controlPlane, vc)
	deleting(s.controlPlane, metav1.ConditionTrue, controlplanev1.ReasonDeleting, waiting(vc))
	if !vc.DeletionTimestamp.IsZero() {
		return reconcile.Result{RequeueAfter: checkInterval}, nil
	}
	err = r.Client.Delete(ctx, vc, client.Preconditions{UID: &vc.UID})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("delete VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
	}
	return reconcile.Result{RequeueAfter: checkInterval}, nil
}

// ownVirtualCluster returns the VirtualCluster that is to be deleted with a
// NestedControlPlane: nil if it is gone or someone else's, and if clusterctl
// deletes the NestedControlPlane because it was moved.
func (r *Reconciler) ownVirtualCluster(
	ctx context.Context, controlPlane *controlplanev1.NestedControlPlane,
) (*tenancyv1alpha1.VirtualCluster, error) {
	name := controlPlane.Labels[clusterv1.ClusterNameLabel]
	if _, moved := controlPlane.Annotations[clusterctlv1.DeleteForMoveAnnotation]; moved || name == "" {
		return nil, nil
	}
	vc, key := &tenancyv1alpha1.VirtualCluster{}, client.ObjectKey{Namespace: controlPlane.Namespace, Name: name}
	err := r.Live.Get(ctx, key, vc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get VirtualCluster %s: %w", key, err)
	}
	if !tenant.IsMadeBy(vc, controlPlane) {
		return nil, nil
	}
	return vc, nil
}

package nestedcontrolplane

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
	infrav1 "github.com/virtualcluster/virtualcluster/capi/apis/infrastructure/v1alpha1"
	"github.com/virtualcluster/virtualcluster/capi/controllers/tenant"
)

// fieldOwner owns what the controller writes.
const fieldOwner = client.FieldOwner("vc-capi-control-plane")

// ensureVirtualCluster creates, adopts or updates the VirtualCluster.
func (r *Reconciler) ensureVirtualCluster(ctx context.Context, s *scope) error {
	ref := s.cluster.Spec.ControlPlaneRef
	if ref.GroupKind() != controlplanev1.GroupVersion.WithKind(controlplanev1.NestedControlPlaneKind).GroupKind() ||
		ref.Name != s.controlPlane.Name {
		return blocked(controlplanev1.ReasonWaitingForCluster,
			"spec.controlPlaneRef of Cluster %s does not name this NestedControlPlane", s.cluster.Name)
	}
	infrastructure, err := r.infrastructure(ctx, s)
	if err != nil {
		return err
	}
	if s.virtualCluster, err = r.findVirtualCluster(ctx, s); err != nil {
		return err
	}
	if s.virtualCluster == nil {
		vc := &tenancyv1alpha1.VirtualCluster{}
		key := tenant.Key(s.cluster)
		vc.Namespace, vc.Name = key.Namespace, key.Name
		return write(s, vc, infrastructure, func() error { return r.Client.Create(ctx, vc, fieldOwner) })
	}
	record(s.controlPlane, s.virtualCluster)
	before := s.virtualCluster.DeepCopy()
	return write(s, s.virtualCluster, infrastructure, func() error {
		if equality.Semantic.DeepEqual(before, s.virtualCluster) {
			return nil
		}
		// The resource version keeps it from a VirtualCluster that was created
		// under the name since.
		return r.Client.Patch(ctx, s.virtualCluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	})
}

// infrastructure returns the NestedCluster of the Cluster, or an empty one for
// a Cluster without infrastructure.
func (r *Reconciler) infrastructure(ctx context.Context, s *scope) (*infrav1.NestedCluster, error) {
	infrastructure, ref := &infrav1.NestedCluster{}, s.cluster.Spec.InfrastructureRef
	if !ref.IsDefined() {
		return infrastructure, nil
	}
	if kind := infrav1.GroupVersion.WithKind(infrav1.NestedClusterKind).GroupKind(); ref.GroupKind() != kind {
		return nil, blocked(controlplanev1.ReasonInvalidSpec,
			"spec.infrastructureRef of Cluster %s names a %s: a NestedControlPlane needs a %s", s.cluster.Name, ref.GroupKind(), kind)
	}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: ref.Name}, infrastructure)
	if apierrors.IsNotFound(err) {
		return nil, blocked(controlplanev1.ReasonWaitingForInfrastructure, "NestedCluster %s does not exist yet", ref.Name)
	}
	return infrastructure, err
}

// findVirtualCluster returns the VirtualCluster: nil if it has not been created
// yet, and an error if it is someone else's, or lost.
func (r *Reconciler) findVirtualCluster(ctx context.Context, s *scope) (*tenancyv1alpha1.VirtualCluster, error) {
	vc, key := &tenancyv1alpha1.VirtualCluster{}, tenant.Key(s.cluster)
	uid := s.controlPlane.Annotations[controlplanev1.VirtualClusterUIDAnnotation]
	err := r.Client.Get(ctx, key, vc)
	if apierrors.IsNotFound(err) && uid != "" {
		err = r.Live.Get(ctx, key, vc)
	}
	switch {
	case apierrors.IsNotFound(err) && uid == "":
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, lost(key, uid, "does not exist in this management cluster")
	case err != nil:
		return nil, fmt.Errorf("get VirtualCluster %s: %w", key, err)
	case !tenant.Belongs(vc):
		return nil, blocked(controlplanev1.ReasonVirtualClusterConflict,
			"VirtualCluster %s exists and does not belong to this Cluster: delete the Cluster and create it under another name", key.Name)
	case uid != "" && uid != string(vc.UID):
		return nil, lost(key, uid, "was replaced by another one")
	case !vc.DeletionTimestamp.IsZero():
		return nil, blocked(controlplanev1.ReasonDeleting, "VirtualCluster %s is being deleted", key.Name)
	default:
		return vc, nil
	}
}

// lost is the error for a VirtualCluster that is not there. An empty one in its
// place would look as if the tenant had lost its objects.
func lost(key client.ObjectKey, uid, how string) error {
	return blocked(controlplanev1.ReasonVirtualClusterLost,
		"VirtualCluster %s with UID %s %s: move the Cluster back to where it is or, to start with an empty tenant, "+
			"remove the annotation %s from the NestedControlPlane", key.Name, uid, how, controlplanev1.VirtualClusterUIDAnnotation)
}

// write specifies a VirtualCluster, sends it, and records its UID.
func write(s *scope, vc *tenancyv1alpha1.VirtualCluster, infrastructure *infrav1.NestedCluster, send func() error) error {
	if err := tenant.Specify(vc, s.cluster, s.controlPlane, infrastructure); err != nil {
		return blocked(controlplanev1.ReasonInvalidSpec, "%v", err)
	}
	err := send()
	switch {
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return blocked(controlplanev1.ReasonInvalidSpec, "write VirtualCluster %s: %v", vc.Name, err)
	case apierrors.IsAlreadyExists(err):
		return apierrors.NewConflict(tenancyv1alpha1.GroupVersion.WithResource("virtualclusters").GroupResource(), vc.Name, err)
	case err != nil:
		return fmt.Errorf("write VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
	}
	s.virtualCluster = vc
	record(s.controlPlane, vc)
	return nil
}

// record keeps other VirtualClusters from the place of this one, and clusterctl
// from moving the Cluster away from it.
func record(controlPlane *controlplanev1.NestedControlPlane, vc *tenancyv1alpha1.VirtualCluster) {
	if controlPlane.Annotations == nil {
		controlPlane.Annotations = map[string]string{}
	}
	controlPlane.Annotations[controlplanev1.VirtualClusterUIDAnnotation] = string(vc.UID)
	controlPlane.Annotations[clusterctlv1.BlockMoveAnnotation] = "the tenant's objects are in this management cluster"
}

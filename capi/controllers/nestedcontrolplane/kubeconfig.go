package nestedcontrolplane

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/cluster-api/util/secret"

	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
	admin "github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// ensureKubeconfig copies the admin's kubeconfig of the VirtualCluster to the
// Secret where Cluster API expects it.
func (r *Reconciler) ensureKubeconfig(ctx context.Context, s *scope) error {
	data, err := r.adminKubeconfig(ctx, s)
	if err != nil {
		return err
	}
	want := kubeconfig.GenerateSecretWithOwner(client.ObjectKeyFromObject(s.cluster), data, ownerReference(s.controlPlane))
	existing := &corev1.Secret{}
	err = r.Live.Get(ctx, client.ObjectKeyFromObject(want), existing)
	if apierrors.IsNotFound(err) {
		if err := r.Client.Create(ctx, want, fieldOwner); err != nil {
			return fmt.Errorf("create Secret %s: %w", want.Name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("get Secret %s: %w", want.Name, err)
	}
	if !isOurs(existing, want) {
		return blocked(controlplanev1.ReasonSecretConflict,
			"Secret %s exists and was not created for this NestedControlPlane: delete it", want.Name)
	}
	return r.updateSecret(ctx, existing, want)
}

// updateSecret corrects the kubeconfig, and the owner after a move.
func (r *Reconciler) updateSecret(ctx context.Context, existing, want *corev1.Secret) error {
	owner := want.OwnerReferences[0]
	if bytes.Equal(existing.Data[secret.KubeconfigDataName], want.Data[secret.KubeconfigDataName]) &&
		util.HasExactOwnerRef(existing.OwnerReferences, owner) {
		return nil
	}
	before := existing.DeepCopy()
	existing.Data = want.Data
	existing.OwnerReferences = util.EnsureOwnerRef(existing.OwnerReferences, owner)
	change := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, existing, change, fieldOwner); err != nil {
		return fmt.Errorf("update Secret %s: %w", want.Name, err)
	}
	return nil
}

// adminKubeconfig reads the kubeconfig that vc-manager has written: the one through
// the gateway, if that of the control plane has a TLS server name, which many
// clients ignore.
func (r *Reconciler) adminKubeconfig(ctx context.Context, s *scope) ([]byte, error) {
	if s.virtualCluster == nil || s.virtualCluster.Status.ClusterNamespace == "" {
		return nil, blocked(controlplanev1.ReasonNotAvailable, "The VirtualCluster has no kubeconfig yet")
	}
	source := &corev1.Secret{}
	err := r.Client.Get(ctx, client.ObjectKey{
		Namespace: s.virtualCluster.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret,
	}, source)
	data := admin.ForUsers(source.Data)
	if apierrors.IsNotFound(err) || err == nil && len(data) == 0 {
		return nil, blocked(controlplanev1.ReasonNotAvailable, "The VirtualCluster has no kubeconfig yet")
	}
	if err != nil {
		return nil, fmt.Errorf("get the kubeconfig of the VirtualCluster: %w", err)
	}
	return data, nil
}

// isOurs reports whether a Secret was created for the NestedControlPlane that
// owns another one. Its UID changes when it is moved or restored.
func isOurs(existing, want *corev1.Secret) bool {
	owner := want.OwnerReferences[0]
	return existing.Type == want.Type &&
		existing.Labels[clusterv1.ClusterNameLabel] == want.Labels[clusterv1.ClusterNameLabel] &&
		slices.ContainsFunc(existing.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Kind == owner.Kind && r.Name == owner.Name
		})
}

// ownerReference refers to the controller of an object. It does not block the
// deletion of the owner, which would take another permission.
func ownerReference(controlPlane *controlplanev1.NestedControlPlane) metav1.OwnerReference {
	isController := true
	return metav1.OwnerReference{
		APIVersion: controlplanev1.GroupVersion.String(), Kind: controlplanev1.NestedControlPlaneKind,
		Name: controlPlane.Name, UID: controlPlane.UID, Controller: &isController,
	}
}

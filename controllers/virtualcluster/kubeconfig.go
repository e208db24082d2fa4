package virtualcluster

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// ensureKubeconfig puts the admin kubeconfig into its Secret, unless it is there.
func (r *Reconciler) ensureKubeconfig(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, kubeconfig []byte) error {
	key := types.NamespacedName{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret}
	existing := &corev1.Secret{}
	err := r.Client.Get(ctx, key, existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get Secret %s: %w", key, err)
	}
	if err == nil && holdsKubeconfig(existing, vc, kubeconfig) {
		return nil
	}
	// Applied, not created: the root namespace is ours, so that is a Secret of this name that lost its labels.
	if err := r.Client.Apply(ctx, kubeconfigSecret(vc, kubeconfig), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write Secret %s: %w", key, withoutData(err))
	}
	return nil
}

// holdsKubeconfig says whether a Secret is as it should be.
func holdsKubeconfig(secret *corev1.Secret, vc *tenancyv1alpha1.VirtualCluster, kubeconfig []byte) bool {
	return bytes.Equal(secret.Data[names.AdminKubeconfigKey], kubeconfig) &&
		holds(secret.Labels, ownerLabels(vc)) &&
		secret.Annotations[names.VCUID] == string(vc.UID)
}

// kubeconfigSecret is the Secret as it should be.
func kubeconfigSecret(vc *tenancyv1alpha1.VirtualCluster, kubeconfig []byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(names.AdminKubeconfigSecret, vc.Status.ClusterNamespace).
		WithLabels(ownerLabels(vc)).
		WithAnnotations(map[string]string{names.VCUID: string(vc.UID)}).
		WithData(map[string][]byte{names.AdminKubeconfigKey: kubeconfig})
}

// withoutData keeps of an error only its reason where the rest may quote the object: it ends in logs and in a status.
func withoutData(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return fmt.Errorf("the super cluster refuses it: %s", apierrors.ReasonForError(err))
	}
	return err
}

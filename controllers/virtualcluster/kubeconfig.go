package virtualcluster

import (
	"bytes"
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// ensureKubeconfig puts the admin kubeconfig into its Secret, unless it is there.
func (r *Reconciler) ensureKubeconfig(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, kubeconfig []byte) error {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = vc.Status.ClusterNamespace, names.AdminKubeconfigSecret
	want := corev1ac.Secret(secret.Name, secret.Namespace).
		WithLabels(ownerLabels(vc)).
		WithAnnotations(ownerAnnotations(vc)).
		WithData(map[string][]byte{names.AdminKubeconfigKey: kubeconfig})
	return r.ensurePublished(ctx, vc, secret, want, func() bool {
		return bytes.Equal(secret.Data[names.AdminKubeconfigKey], kubeconfig)
	})
}

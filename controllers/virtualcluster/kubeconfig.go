package virtualcluster

import (
	"bytes"
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// ensureKubeconfig writes the kubeconfigs of the admin, also through the gateway,
// and of the platform to their Secret, unless they are there.
func (r *Reconciler) ensureKubeconfig(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, controlPlane *provisioner.ControlPlane,
) error {
	gateway, err := r.gatewayKubeconfig(vc.Status.ClusterNamespace, controlPlane)
	if err != nil {
		return err
	}
	data := map[string][]byte{names.AdminKubeconfigKey: controlPlane.Kubeconfig}
	for key, optional := range map[string][]byte{
		names.GatewayKubeconfigKey:  gateway,
		names.InternalKubeconfigKey: controlPlane.InternalKubeconfig,
		names.PlatformKubeconfigKey: controlPlane.PlatformKubeconfig,
	} {
		if len(optional) > 0 {
			data[key] = optional
		}
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = vc.Status.ClusterNamespace, names.AdminKubeconfigSecret
	want := corev1ac.Secret(secret.Name, secret.Namespace).
		WithLabels(names.OwnerLabels(vc)).
		WithAnnotations(names.OwnerAnnotations(vc)).
		WithData(data)
	return r.ensurePublished(ctx, vc, secret, want, func() bool {
		return maps.EqualFunc(secret.Data, data, bytes.Equal)
	})
}

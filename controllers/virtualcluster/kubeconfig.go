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

// ensureKubeconfig writes the kubeconfigs of the tenant to their Secret, unless
// they are there.
func (r *Reconciler) ensureKubeconfig(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, controlPlane *provisioner.ControlPlane, converted bool,
) error {
	data, err := r.kubeconfigs(vc.Status.ClusterNamespace, controlPlane, converted)
	if err != nil {
		return err
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

// kubeconfigs returns those of the admin, also through the gateway, and of the
// platform. A converted tenant has only the one through the gateway: the syncer
// and others connect to control planes.
func (r *Reconciler) kubeconfigs(
	clusterKey string, controlPlane *provisioner.ControlPlane, converted bool,
) (map[string][]byte, error) {
	if converted {
		return map[string][]byte{names.GatewayKubeconfigKey: controlPlane.Kubeconfig}, nil
	}
	gateway, err := r.gatewayKubeconfig(clusterKey, controlPlane)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{
		names.AdminKubeconfigKey:    controlPlane.Kubeconfig,
		names.GatewayKubeconfigKey:  gateway,
		names.InternalKubeconfigKey: controlPlane.InternalKubeconfig,
		names.PlatformKubeconfigKey: controlPlane.PlatformKubeconfig,
	}
	maps.DeleteFunc(data, func(key string, value []byte) bool { return key != names.AdminKubeconfigKey && len(value) == 0 })
	return data, nil
}

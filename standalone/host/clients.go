package host

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/secrets"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// clientsOf returns the Secret by which clients reach a control plane.
func clientsOf(plane *tenancyv1alpha1.HostedControlPlane, state contract.ControlPlane) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: plane.Namespace, Name: tenancyv1alpha1.HostedControlPlaneSecret,
			Annotations: map[string]string{names.VCUID: string(plane.Spec.VirtualCluster.UID)},
		},
		Data: dataOf(state),
	}
}

func dataOf(state contract.ControlPlane) map[string][]byte {
	data := map[string][]byte{
		tenancyv1alpha1.AdminKubeconfigKey:    state.Kubeconfig,
		tenancyv1alpha1.InternalKubeconfigKey: state.InternalKubeconfig,
		tenancyv1alpha1.PlatformKubeconfigKey: state.PlatformKubeconfig,
		tenancyv1alpha1.KubeletClientCAKey:    state.KubeletClientCA,
	}
	for key, value := range state.Gateway.Data() {
		data[tenancyv1alpha1.GatewayKeyPrefix+key] = value
	}
	return data
}

// publishClients writes the Secret by which clients reach a control plane, unless
// it is up to date.
func (r *controlPlanes) publishClients(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, state contract.ControlPlane,
) error {
	want, have := clientsOf(plane, state), &corev1.Secret{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("get Secret %s: %w", client.ObjectKeyFromObject(want), secrets.WithoutData(err))
	case err != nil:
		err = r.Create(ctx, want, client.FieldOwner(name))
	case equality.Semantic.DeepEqual(have.Data, want.Data) && have.Annotations[names.VCUID] == want.Annotations[names.VCUID]:
		return nil
	default:
		want.ResourceVersion = have.ResourceVersion
		err = r.Update(ctx, want, client.FieldOwner(name))
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", client.ObjectKeyFromObject(want), secrets.WithoutData(err))
	}
	return nil
}

// deleteClients deletes the Secret by which clients reach a control plane.
func (r *controlPlanes) deleteClients(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: tenancyv1alpha1.HostedControlPlaneSecret}}
	if err := r.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

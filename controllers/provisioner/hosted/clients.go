package hosted

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const (
	// recheck is the interval of reading the credentials of a control plane,
	// which are renewed without an event.
	recheck = time.Hour
	// maxCredential bounds each of them.
	maxCredential = 256 << 10
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// addClients adds the credentials by which clients reach a control plane that
// serves. vc-host writes them before it reports that.
func (p *Provisioner) addClients(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, state provisioner.ControlPlane,
) (provisioner.ControlPlane, error) {
	key := types.NamespacedName{Namespace: vc.Status.ClusterNamespace, Name: tenancyv1alpha1.HostedControlPlaneSecret}
	secret := &corev1.Secret{}
	err := p.live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) || err == nil && len(secret.Data[tenancyv1alpha1.AdminKubeconfigKey]) == 0 {
		state.Ready, state.Message = false, fmt.Sprintf("Waiting for vc-host to write the kubeconfigs to Secret %s", key)
		return state, nil
	}
	if err != nil {
		return provisioner.ControlPlane{}, fmt.Errorf("get Secret %s: %w", key, err)
	}
	if err := checkClients(vc, secret); err != nil {
		return provisioner.ControlPlane{}, err
	}
	state.Kubeconfig = secret.Data[tenancyv1alpha1.AdminKubeconfigKey]
	state.InternalKubeconfig = secret.Data[tenancyv1alpha1.InternalKubeconfigKey]
	state.PlatformKubeconfig = secret.Data[tenancyv1alpha1.PlatformKubeconfigKey]
	state.KubeletClientCA = secret.Data[tenancyv1alpha1.KubeletClientCAKey]
	state.Gateway = gatewayOf(secret.Data)
	state.RecheckAfter = recheck
	return state, nil
}

// gatewayOf returns what the gateway needs of a control plane.
func gatewayOf(data map[string][]byte) gatewayaccess.Access {
	access := map[string][]byte{}
	for key, value := range data {
		if name, ok := strings.CutPrefix(key, tenancyv1alpha1.GatewayKeyPrefix); ok {
			access[name] = value
		}
	}
	return gatewayaccess.Read(access)
}

// checkClients fails unless the Secret is one of the VirtualCluster and of
// ordinary size.
func checkClients(vc *tenancyv1alpha1.VirtualCluster, secret *corev1.Secret) error {
	if owner := secret.Annotations[names.VCUID]; owner != string(vc.UID) {
		return provisioner.Failf(tenancyv1alpha1.ReasonNamespaceConflict,
			"Secret %s/%s exists and does not belong to this VirtualCluster (its annotation %s is %q): delete the Secret",
			secret.Namespace, secret.Name, names.VCUID, owner)
	}
	for name, value := range secret.Data {
		if len(value) > maxCredential {
			return fmt.Errorf("read Secret %s/%s: its key %s has more than %d bytes", secret.Namespace, secret.Name, name, maxCredential)
		}
	}
	return nil
}

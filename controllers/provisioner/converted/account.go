package converted

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,resourceNames=converted,verbs=create

// requestToken returns a token of a tenant's service account.
func requestToken(
	ctx context.Context, c client.Client, clusterKey string, spec authenticationv1.TokenRequestSpec,
) (authenticationv1.TokenRequestStatus, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: clusterKey, Name: names.ConvertedAccount}}
	request := &authenticationv1.TokenRequest{Spec: spec}
	if err := c.SubResource("token").Create(ctx, account, request, fieldOwner); err != nil {
		return request.Status, fmt.Errorf("request a token of ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
	}
	return request.Status, nil
}

// +kubebuilder:rbac:groups="",resources=serviceaccounts,resourceNames=converted,verbs=get;create;patch

// ensureAccount makes the service account, in the tenant's own root namespace.
func (p *Provisioner) ensureAccount(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	key := types.NamespacedName{Namespace: vc.Status.ClusterNamespace, Name: names.ConvertedAccount}
	account := &corev1.ServiceAccount{}
	err := p.live.Get(ctx, key, account)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get ServiceAccount %s: %w", key, err)
	}
	if err == nil {
		if owner := account.Annotations[names.VCUID]; owner != string(vc.UID) {
			return provisioner.Failf(tenancyv1alpha1.ReasonNamespaceConflict,
				"ServiceAccount %s exists and does not belong to this VirtualCluster (its annotation %s is %q): delete the ServiceAccount",
				key, names.VCUID, owner)
		}
		return nil
	}
	want := corev1ac.ServiceAccount(key.Name, key.Namespace).
		WithLabels(names.OwnerLabels(vc)).
		WithAnnotations(names.OwnerAnnotations(vc)).
		WithAutomountServiceAccountToken(false)
	if err := p.client.Apply(ctx, want, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("create ServiceAccount %s: %w", key, err)
	}
	return nil
}

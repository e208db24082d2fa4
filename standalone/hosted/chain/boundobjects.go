package chain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// boundObjects reads the objects to which tokens are bound. A token is invalid
// when one of them no longer exists. It reads the storage, and not informers,
// which would keep all Secrets and Pods of the tenant in memory.
type boundObjects struct{ client coreclient.CoreV1Interface }

// GetServiceAccount implements serviceaccount.ServiceAccountTokenGetter.
func (b boundObjects) GetServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return b.client.ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
}

// GetPod implements serviceaccount.ServiceAccountTokenGetter.
func (b boundObjects) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return b.client.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

// GetSecret implements serviceaccount.ServiceAccountTokenGetter.
func (b boundObjects) GetSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return b.client.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// GetNode implements serviceaccount.ServiceAccountTokenGetter.
func (b boundObjects) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	return b.client.Nodes().Get(ctx, name, metav1.GetOptions{})
}

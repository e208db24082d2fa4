package chain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
)

// defaultServiceAccount is the service account that each namespace has.
const defaultServiceAccount = "default"

// createDefaults creates what upstream's controllers create in each namespace,
// so that a new tenant can be used before its controllers run, and need not run
// these.
func createDefaults(ctx context.Context, client kubernetes.Interface) error {
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the namespaces of a new cluster: %w", err)
	}
	for i := range namespaces.Items {
		name := namespaces.Items[i].Name
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: defaultServiceAccount}}
		if _, err := client.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ServiceAccount %s/%s: %w", name, account.Name, err)
		}
		bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name:        rootcacertpublisher.RootCACertConfigMapName,
			Annotations: map[string]string{rootcacertpublisher.DescriptionAnnotation: rootcacertpublisher.Description},
		}}
		setAuthority(bundle, nil)
		if _, err := client.CoreV1().ConfigMaps(name).Create(ctx, bundle, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ConfigMap %s/%s: %w", name, bundle.Name, err)
		}
	}
	return nil
}

// setAuthority sets the authority of a tenant, in PEM, in its CA bundle. It
// changes no other object.
func setAuthority(object runtime.Object, authority []byte) {
	if bundle, ok := object.(*corev1.ConfigMap); ok && bundle.Name == rootcacertpublisher.RootCACertConfigMapName {
		bundle.Data = map[string]string{corev1.ServiceAccountRootCAKey: string(authority)}
	}
}

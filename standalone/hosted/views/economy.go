package views

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// rootCA is the ConfigMap in each namespace whose content a controller reads.
const rootCA = "kube-root-ca.crt"

// Economize is a transform for informers. It strips managed fields, and the
// contents of ConfigMaps and Secrets except those that Kubernetes' controllers
// and authenticators read. It never fails.
func Economize(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		if o.Name != rootCA {
			o.Data, o.BinaryData = nil, nil
		}
	case *corev1.Secret:
		if o.Type != corev1.SecretTypeServiceAccountToken && o.Type != corev1.SecretTypeBootstrapToken {
			o.Data = nil
		}
	}
	return DropManagedFields(obj)
}

// DropManagedFields is a transform for informers that strips managed fields,
// which no controller reads.
func DropManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

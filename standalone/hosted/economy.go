package hosted

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
)

// rootCA is the ConfigMap in each namespace whose content a controller reads.
const rootCA = "kube-root-ca.crt"

// dropContents strips the contents of ConfigMaps and Secrets from a control
// plane's informers, except those that its controllers and authenticators read.
// The apiserver's own cache has them already.
func dropContents(factory informers.SharedInformerFactory) error {
	core := factory.Core().V1()
	if err := core.ConfigMaps().Informer().SetTransform(dropContent); err != nil {
		return err
	}
	return core.Secrets().Informer().SetTransform(dropContent)
}

func dropContent(obj any) (any, error) {
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
	return dropManagedFields(obj)
}

package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// ConfigMap is synced down while a pod refers to it. The tenant's root CA has
// another name, since the super cluster publishes its own under the same name.
func ConfigMap() kinds.Flow {
	return kinds.Down[*corev1.ConfigMap]{
		Name:     "ConfigMap",
		Object:   &corev1.ConfigMap{},
		List:     &corev1.ConfigMapList{},
		Summary:  "down, while a pod, an Ingress or a ServiceAccount refers to them",
		OnDemand: true,
		SuperKey: func(t translate.Tenant, key client.ObjectKey) client.ObjectKey {
			key.Name = translate.SuperConfigMapName(key.Name)
			return t.SuperKey(key)
		},
		TenantKey: func(super client.Object) client.ObjectKey {
			return client.ObjectKey{
				Namespace: translate.OriginOf(super).Namespace,
				Name:      translate.TenantConfigMapName(super.GetName()),
			}
		},
		Desired: func(_ kinds.View, tenant *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			own := tenant.DeepCopy()
			return &corev1.ConfigMap{Data: own.Data, BinaryData: own.BinaryData, Immutable: own.Immutable}, nil
		},
		Merge: func(super, desired *corev1.ConfigMap) {
			super.Data, super.BinaryData, super.Immutable = desired.Data, desired.BinaryData, desired.Immutable
		},
		Replace: func(super, desired *corev1.ConfigMap) bool {
			return ptr.Deref(super.Immutable, false) && !sameConfigMap(super, desired)
		},
	}
}

func sameConfigMap(a, b *corev1.ConfigMap) bool {
	return ptr.Deref(b.Immutable, false) && semanticEqual(a.Data, b.Data) && semanticEqual(a.BinaryData, b.BinaryData)
}

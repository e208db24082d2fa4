package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Secret is synced down while a pod refers to it.
func Secret() kinds.Flow {
	return kinds.Down[*corev1.Secret]{
		Name:     "Secret",
		Object:   &corev1.Secret{},
		List:     &corev1.SecretList{},
		Summary:  "down, while a pod, an Ingress or a ServiceAccount refers to them",
		OnDemand: true,
		// The syncer's own Secrets for pods are not copies.
		Selector: without(names.Tokens, selection.DoesNotExist),
		Reserved: names.IsTokenSecret,
		Desired:  desiredSecret,
		Merge: func(super, desired *corev1.Secret) {
			super.Data, super.Immutable = desired.Data, desired.Immutable
		},
		Replace: func(super, desired *corev1.Secret) bool {
			return super.Type != desired.Type || ptr.Deref(super.Immutable, false) && !sameSecret(super, desired)
		},
	}
}

// desiredSecret copies the data. A service account token of the tenant becomes
// opaque: with its own type, the super cluster would look up the service
// account by its UID, find another one, and delete the token.
func desiredSecret(_ kinds.View, tenant *corev1.Secret) (*corev1.Secret, error) {
	kind := tenant.Type
	if kind == corev1.SecretTypeServiceAccountToken {
		kind = corev1.SecretTypeOpaque
	}
	own := tenant.DeepCopy()
	return &corev1.Secret{Type: kind, Data: own.Data, Immutable: own.Immutable}, nil
}

func sameSecret(a, b *corev1.Secret) bool {
	return ptr.Deref(b.Immutable, false) && semanticEqual(a.Data, b.Data)
}

package tokens

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// NewCache returns the cache of the Secrets with tokens. It holds their
// metadata.
func NewCache(super cluster.Cluster) (cache.Cache, error) {
	kept, err := informer.NewCache(super, cache.Options{
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{names.Tokens: session.True}), DefaultTransform: strip,
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of tokens: %w", err)
	}
	return kept, nil
}

// SecretKind returns the kind of the Secrets with tokens.
func SecretKind() *kinds.Kind {
	return &kinds.Kind{
		Name: "Tokens", GVK: corev1.SchemeGroupVersion.WithKind(SecretType().Kind),
		Object: &metav1.PartialObjectMetadata{TypeMeta: SecretType()}, Source: kinds.TokenSecrets,
	}
}

// strip removes the metadata of a Secret that is not read.
func strip(obj any) (any, error) {
	if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
		meta.ManagedFields, meta.Labels = nil, nil
	}
	return obj, nil
}

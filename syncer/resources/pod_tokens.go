package resources

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// podTokens returns the tokens in a pod's volumes. A kubelet would request them
// from the super cluster, which does not know the tenant's accounts; so they
// are issued by the tenant's apiserver, and the copy's volumes contain them
// from a Secret, which kubelets follow. They are bound to the pod's node, so
// that there are none before it has one.
func podTokens(tenant *corev1.Pod) kinds.Tokens {
	tokens := kinds.Tokens{ServiceAccount: cmp.Or(tenant.Spec.ServiceAccountName, defaultAccount)}
	if tenant.Spec.NodeName == "" {
		return tokens
	}
	for i := range tenant.Spec.Volumes {
		v := &tenant.Spec.Volumes[i]
		if v.Projected == nil {
			continue
		}
		for j, source := range v.Projected.Sources {
			if t := source.ServiceAccountToken; t != nil {
				if tokens.Wanted == nil {
					tokens.Wanted = map[string]kinds.Token{}
				}
				tokens.Wanted[tokenKey(v.Name, j)] = kinds.Token{Audience: t.Audience, ExpirationSeconds: t.ExpirationSeconds}
			}
		}
	}
	return tokens
}

// tokenKey returns the key in the Secret of the token in a source of a volume.
func tokenKey(volume string, source int) string { return fmt.Sprintf("%s.%d", volume, source) }

// keptToken returns the projection of a token in the Secret.
func keptToken(pod, volume string, source int, path string) *corev1.SecretProjection {
	return &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: names.TokenSecret(pod)},
		Items:                []corev1.KeyToPath{{Key: tokenKey(volume, source), Path: path}},
	}
}

package resources

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// podTokens are the tokens that a pod's volumes show. A kubelet would ask the super cluster for them, which knows nothing of the tenant's
// accounts; so they are issued by the tenant's apiserver, and the copy's volumes show them out of a Secret, which kubelets follow. They say
// which node the pod is on, so that there are none before.
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

// tokenKey is the key in the Secret of the token that is one of a volume's sources.
func tokenKey(volume string, source int) string { return fmt.Sprintf("%s.%d", volume, source) }

// keptToken shows a token out of the Secret that it is kept in.
func keptToken(pod, volume string, source int, path string) *corev1.SecretProjection {
	return &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: names.TokenSecret(pod)},
		Items:                []corev1.KeyToPath{{Key: tokenKey(volume, source), Path: path}},
	}
}

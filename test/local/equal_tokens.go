package local

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// isTokens reports whether a Secret holds the tokens of a pod.
func isTokens(obj client.Object) bool { return obj.GetLabels()[names.Tokens] != "" }

// compareTokens compares the tenant's pods with their token Secrets: a running
// pod with token volumes has exactly one, and none outlives its pod.
func (c *comparison) compareTokens(pods, secrets []client.Object) {
	kept := map[types.UID][]client.Object{}
	for _, s := range secrets {
		if origin := translate.OriginOf(s); isTokens(s) && origin.Cluster == c.who.Key {
			kept[origin.UID] = append(kept[origin.UID], s)
		}
	}
	tokens := downKind{name: "Tokens"}
	for _, obj := range pods {
		have := kept[obj.GetUID()]
		delete(kept, obj.GetUID())
		if pod := obj.(*corev1.Pod); pod.Status.Phase == corev1.PodRunning && readsTokens(pod) && len(have) != 1 {
			c.differf(tokens, obj, "are in %d Secrets", len(have))
		}
	}
	for uid, left := range kept {
		for _, obj := range left {
			c.differf(tokens, obj, "have outlived their pod: UID %q", uid)
		}
	}
}

// readsTokens reports whether a pod has a projected token volume.
func readsTokens(pod *corev1.Pod) bool {
	for _, v := range pod.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ServiceAccountToken != nil {
				return true
			}
		}
	}
	return false
}

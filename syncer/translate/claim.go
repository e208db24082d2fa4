package translate

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Claim notes the keys of all labels and annotations of a desired copy like those that came from the tenant: what somebody else
// added to it goes again when it is no longer desired.
func Claim(desired metav1.Object) {
	annotations := desired.GetAnnotations()
	labelsSet, annotationsSet := foreignKeys(desired.GetLabels()), foreignKeys(annotations)
	setKeys(annotations, names.Labels, labelsSet)
	setKeys(annotations, names.Annotations, annotationsSet)
}

// foreignKeys is a map without the keys of our domain.
func foreignKeys(of map[string]string) map[string]string {
	out := maps.Clone(of)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, names.Domain+"/") })
	return out
}

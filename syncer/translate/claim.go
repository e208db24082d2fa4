package translate

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Claim records the keys of all labels and annotations of a desired copy as if
// they came from the tenant, so that keys which a patch or the syncer added are
// removed when they are no longer desired.
func Claim(desired metav1.Object) {
	annotations := desired.GetAnnotations()
	labelsSet, annotationsSet := foreignKeys(desired.GetLabels()), foreignKeys(annotations)
	setKeys(annotations, names.Labels, labelsSet)
	setKeys(annotations, names.Annotations, annotationsSet)
}

// foreignKeys returns the map without keys of VirtualCluster's domain.
func foreignKeys(of map[string]string) map[string]string {
	out := maps.Clone(of)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, names.Domain+"/") })
	return out
}

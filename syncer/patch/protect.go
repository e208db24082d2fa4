package patch

import (
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// free are the fields of metadata that patches may change.
var free = []string{"labels", "annotations", "finalizers"}

// identity are all other fields of metadata: the identity and owners of an
// object, and fields that its apiserver maintains.
var identity = []string{
	"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "ownerReferences", "managedFields", "selfLink",
}

// guarded are prefixes of labels and annotations that identify copies, or that
// weaken the protection of the super cluster.
var guarded = []string{names.Domain + "/", "pod-security.kubernetes.io/"}

// protected holds the fields of an object that no patch may change.
type protected struct {
	kind, metadata map[string]any
}

// protect saves the protected fields.
func protect(content map[string]any) protected {
	kind := map[string]any{}
	putBack(kind, content, "apiVersion")
	putBack(kind, content, "kind")
	metadata, _ := content["metadata"].(map[string]any)
	return protected{kind: kind, metadata: runtime.DeepCopyJSON(metadata)}
}

// restore restores the protected fields.
func (p protected) restore(content map[string]any) error {
	putBack(content, p.kind, "apiVersion")
	putBack(content, p.kind, "kind")
	metadata, isObject := content["metadata"].(map[string]any)
	if !isObject && content["metadata"] != nil {
		return errors.New("metadata must be an object")
	}
	if metadata == nil {
		metadata = map[string]any{}
	}
	for _, field := range identity {
		putBack(metadata, p.metadata, field)
	}
	restoreKeys(metadata, p.metadata, "labels")
	restoreKeys(metadata, p.metadata, "annotations")
	content["metadata"] = metadata
	return nil
}

// checkMetadata validates the metadata that a patch may have written to an
// object without a Go type. Fields that existed before are not checked: they
// may be those of a newer apiserver.
func (p protected) checkMetadata(content map[string]any) error {
	metadata, _ := content["metadata"].(map[string]any)
	written := map[string]any{}
	for field, value := range metadata {
		if _, had := p.metadata[field]; !had || slices.Contains(free, field) {
			written[field] = value
		}
	}
	return decode(map[string]any{"metadata": written}, &metav1.PartialObjectMetadata{})
}

// putBack restores a field of an object.
func putBack(object, was map[string]any, field string) {
	if value, had := was[field]; had {
		object[field] = runtime.DeepCopyJSONValue(value)
	} else {
		delete(object, field)
	}
}

// restoreKeys restores the guarded labels or annotations.
func restoreKeys(metadata, was map[string]any, field string) {
	now, isObject := metadata[field].(map[string]any)
	if !isObject && metadata[field] != nil {
		return // decode reports the error
	}
	for key := range now {
		if isGuarded(key) {
			delete(now, key)
		}
	}
	before, _ := was[field].(map[string]any)
	for key, value := range before {
		if !isGuarded(key) {
			continue
		}
		if now == nil {
			now = map[string]any{}
		}
		now[key] = value
	}
	if now != nil {
		metadata[field] = now
	}
}

// isGuarded reports whether patches must not change a label or annotation.
func isGuarded(key string) bool {
	return slices.ContainsFunc(guarded, func(beginning string) bool { return strings.HasPrefix(key, beginning) })
}

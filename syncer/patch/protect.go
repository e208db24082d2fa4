package patch

import (
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// free are the fields of metadata that patches may write.
var free = []string{"labels", "annotations", "finalizers"}

// identity are the others: what an object is called, whose it is, and what its apiserver keeps.
var identity = []string{
	"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "ownerReferences", "managedFields", "selfLink",
}

// guarded are the beginnings of the labels and annotations by which the syncer knows its copies, and of those that lower the
// super cluster's guard.
var guarded = []string{names.Domain + "/", "pod-security.kubernetes.io/"}

// protected is what no patch may change, as it was.
type protected struct {
	kind, metadata map[string]any
}

// protect remembers what is to be put back.
func protect(content map[string]any) protected {
	kind := map[string]any{}
	putBack(kind, content, "apiVersion")
	putBack(kind, content, "kind")
	metadata, _ := content["metadata"].(map[string]any)
	return protected{kind: kind, metadata: runtime.DeepCopyJSON(metadata)}
}

// restore puts it back.
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

// checkMetadata says whether what a patch may have written into metadata is what belongs there, for objects without a type that
// says so. Fields that were there before may be ones that only a newer apiserver knows.
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

// putBack makes a field of an object what it was.
func putBack(object, was map[string]any, field string) {
	if value, had := was[field]; had {
		object[field] = runtime.DeepCopyJSONValue(value)
	} else {
		delete(object, field)
	}
}

// restoreKeys makes the guarded labels or annotations what they were.
func restoreKeys(metadata, was map[string]any, field string) {
	now, isObject := metadata[field].(map[string]any)
	if !isObject && metadata[field] != nil {
		return // decoding says what is wrong
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

// isGuarded says whether patches may not touch a label or annotation.
func isGuarded(key string) bool {
	return slices.ContainsFunc(guarded, func(beginning string) bool { return strings.HasPrefix(key, beginning) })
}

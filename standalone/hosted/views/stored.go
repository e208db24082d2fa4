package views

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StoredKind is a kind of Kubernetes' own APIs, as it is stored.
type StoredKind struct{ kind kind }

// KindOf returns the kind of a resource, whose objects are decoded to the
// version of the resource, or to their metadata.
func KindOf(resource schema.GroupVersionResource, metadata bool) (StoredKind, error) {
	example, err := exampleOf(resource)
	if err != nil {
		return StoredKind{}, err
	}
	if metadata {
		return StoredKind{metadataKind(resource)}, nil
	}
	typed, _ := typedKind(example)
	return StoredKind{typed}, typed.err
}

// Resource returns the prefix of the records, as in keyspace.RecordPrefix.
func (k StoredKind) Resource() string { return k.kind.resource }

// Decode returns the object of a record, with the resource version of a
// revision and without its managed fields.
func (k StoredKind) Decode(name string, value []byte, revision int64) (runtime.Object, error) {
	decoded, err := k.kind.decodeRecord(name, value, strconv.FormatInt(revision, 10))
	if err != nil {
		return nil, err
	}
	object, err := meta.Accessor(decoded)
	if err != nil {
		return nil, err
	}
	object.SetManagedFields(nil)
	return decoded, nil
}

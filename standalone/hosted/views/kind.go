package views

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // installs all built-in API groups
	"k8s.io/kubernetes/pkg/kubeapiserver"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

// kind is what the objects of a view are.
type kind struct {
	name string
	// resource is the prefix of the records in etcd.
	resource string
	decode   func(value []byte) (runtime.Object, error)
	// err means that there are no such objects.
	err error
}

// decodeRecord returns the object of a record, with a resource version. The
// object must have the name of the record.
func (k kind) decodeRecord(name string, value []byte, revision string) (runtime.Object, error) {
	decoded, err := k.decode(value)
	if err != nil {
		return nil, &DecodeError{Kind: k.name, Resource: k.resource, Name: name, UnknownVersion: runtime.IsNotRegisteredError(err)}
	}
	object, err := meta.Accessor(decoded)
	if err != nil || cache.MetaObjectToName(object).String() != name {
		return nil, &DecodeError{Kind: k.name, Resource: k.resource, Name: name}
	}
	object.SetResourceVersion(revision)
	return decoded, nil
}

// prefixOf returns the prefix at which apiservers store a resource: those of
// Kubernetes' own APIs without the group, all others with it.
func prefixOf(resource schema.GroupResource) string {
	if prefix, special := kubeapiserver.SpecialDefaultResourcePrefixes[resource]; special {
		return prefix
	}
	if legacyscheme.Scheme.IsGroupRegistered(resource.Group) {
		return resource.Resource
	}
	return resource.Group + "/" + resource.Resource
}

// typedKind returns the kind of a Go type of Kubernetes' own APIs, and its
// resource.
func typedKind(example runtime.Object) (kind, schema.GroupVersionResource) {
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(example)
	if err != nil {
		name := reflect.TypeOf(example).String()
		return kind{name: name, err: fmt.Errorf("find the storage of %s: %w", name, err)}, schema.GroupVersionResource{Resource: name}
	}
	gvk := kinds[0]
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	decode := func(value []byte) (runtime.Object, error) {
		object, err := decodeVersion(value, gvk.GroupVersion())
		if err != nil {
			return nil, err
		}
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as a typed client returns it
		return object, nil
	}
	return kind{name: gvk.Kind, resource: prefixOf(resource.GroupResource()), decode: decode}, resource
}

// decodeVersion decodes an object, which may be stored in another version. Only
// the internal version can be converted to all others.
func decodeVersion(value []byte, want schema.GroupVersion) (runtime.Object, error) {
	object, stored, err := legacyscheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
	if err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(object)
	if stored.GroupVersion() == want {
		return object, nil
	}
	internal := schema.GroupVersion{Group: stored.Group, Version: runtime.APIVersionInternal}
	if object, err = legacyscheme.Scheme.UnsafeConvertToVersion(object, internal); err != nil {
		return nil, err
	}
	return legacyscheme.Scheme.UnsafeConvertToVersion(object, want)
}

// exampleOf returns an object of a resource of Kubernetes' own APIs.
func exampleOf(resource schema.GroupVersionResource) (runtime.Object, error) {
	for name := range legacyscheme.Scheme.KnownTypes(resource.GroupVersion()) {
		gvk := resource.GroupVersion().WithKind(name)
		if plural, _ := meta.UnsafeGuessKindToResource(gvk); plural == resource && !strings.HasSuffix(name, "List") {
			return legacyscheme.Scheme.New(gvk)
		}
	}
	return nil, fmt.Errorf("no kind of resource %s is known", resource)
}

// metadataKind returns the kind of the metadata of any resource.
func metadataKind(resource schema.GroupVersionResource) kind {
	return kind{name: resource.GroupResource().String(), resource: prefixOf(resource.GroupResource()), decode: decodeMetadata}
}

func decodeMetadata(value []byte) (runtime.Object, error) { return DecodeMetadata(value) }

// DecodeMetadata decodes the metadata of an object of any version, in either of
// the formats in which apiservers store objects.
func DecodeMetadata(value []byte) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	enveloped, isProtobuf := bytes.CutPrefix(value, []byte(nesting.ProtobufPrefix))
	if !isProtobuf {
		if err := json.Unmarshal(value, object); err != nil {
			return nil, err
		}
		object.TypeMeta = metav1.TypeMeta{}
		return object, nil
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(enveloped); err != nil {
		return nil, err
	}
	// Every kind has its metadata in the field in which this kind has them.
	return object, object.Unmarshal(envelope.Raw)
}

package informer

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Reasons for dropping an object of an apiserver.
const (
	// ReasonKind: the object states another kind, or has another type.
	ReasonKind = "Kind"
	// ReasonName and ReasonNamespace: the name or namespace is invalid.
	ReasonName      = "Name"
	ReasonNamespace = "Namespace"
	// ReasonIdentity: the UID or resource version cannot come from an
	// apiserver.
	ReasonIdentity = "Identity"
	// ReasonMetadata: there are more labels, annotations, finalizers or owners
	// than an apiserver accepts.
	ReasonMetadata = "Metadata"
	// ReasonDuplicate: the list has another object with the name.
	ReasonDuplicate = "Duplicate"
	// ReasonEvent: the watch event is not about an object of the kind.
	ReasonEvent = "Event"
	// ReasonMemory: the object would exceed the memory budget.
	ReasonMemory = "Memory"
)

const (
	// maxAnnotations is Kubernetes' limit for the annotations of an object, in
	// bytes. It also bounds labels here.
	maxAnnotations = 256 << 10
	// maxReferences bounds the number of finalizers, and of owners, of an
	// object.
	maxReferences = 1000
	// maxIdentity bounds the length of UIDs and resource versions, which have
	// up to 36 and 20 characters.
	maxIdentity = 64
)

// checker validates objects of one kind from an untrusted apiserver.
type checker struct {
	example    runtime.Object
	namespaced bool
}

// check returns the reason to drop an object; empty if it is valid.
func (c checker) check(obj any) string {
	o, ok := obj.(interface {
		metav1.Object
		runtime.Object
	})
	if !ok || !c.isKind(o) {
		return ReasonKind
	}
	switch {
	case len(validation.IsDNS1123Subdomain(o.GetName())) > 0:
		return ReasonName
	case c.namespaced != (o.GetNamespace() != ""), c.namespaced && len(validation.IsDNS1123Label(o.GetNamespace())) > 0:
		return ReasonNamespace
	case !isIdentity(string(o.GetUID())), !isIdentity(o.GetResourceVersion()):
		return ReasonIdentity
	case sizeOfTexts(o.GetAnnotations()) > maxAnnotations, sizeOfTexts(o.GetLabels()) > maxAnnotations,
		len(o.GetFinalizers()) > maxReferences, len(o.GetOwnerReferences()) > maxReferences:
		return ReasonMetadata
	}
	return ""
}

// isKind reports whether an object is of the kind. An object of a type for many
// kinds, such as metadata, has to state the same kind as the example.
func (c checker) isKind(o runtime.Object) bool {
	if reflect.TypeOf(o) != reflect.TypeOf(c.example) {
		return false
	}
	says := o.GetObjectKind().GroupVersionKind()
	if want := c.example.GetObjectKind().GroupVersionKind(); !want.Empty() {
		return says == want
	}
	return says.Empty() || says.Kind == c.kind()
}

// kind returns the name of the kind.
func (c checker) kind() string { return kindOf(c.example) }

func kindOf(example runtime.Object) string {
	if says := example.GetObjectKind().GroupVersionKind(); !says.Empty() {
		return says.Kind
	}
	return reflect.TypeOf(example).Elem().Name()
}

// isIdentity reports whether a text can be a UID or a resource version: short,
// and with safe characters only.
func isIdentity(text string) bool {
	if text == "" || len(text) > maxIdentity {
		return false
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '.' && c != ':' && c != '_' {
			return false
		}
	}
	return true
}

func sizeOfTexts(texts map[string]string) int {
	size := 0
	for key, value := range texts {
		size += len(key) + len(value)
	}
	return size
}

// dropped replaces a dropped object while a list is collected. All are equal
// for the collector.
type dropped struct{}

// GetObjectMeta returns empty metadata.
func (dropped) GetObjectMeta() metav1.Object { return &metav1.ObjectMeta{} }

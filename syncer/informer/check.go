package informer

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Reasons why an object of an apiserver is dropped.
const (
	// ReasonKind: it states another kind, or is of another type.
	ReasonKind = "Kind"
	// ReasonName and ReasonNamespace: its name or namespace is not valid.
	ReasonName      = "Name"
	ReasonNamespace = "Namespace"
	// ReasonIdentity: it has no UID or resource version that an apiserver would give it.
	ReasonIdentity = "Identity"
	// ReasonMetadata: it has more labels, annotations, finalizers or owners than an apiserver would take.
	ReasonMetadata = "Metadata"
	// ReasonDuplicate: a list has another object of the name.
	ReasonDuplicate = "Duplicate"
	// ReasonEvent: an event of a watch is not about an object of the kind.
	ReasonEvent = "Event"
	// ReasonMemory: with it, the objects would take more memory than they may.
	ReasonMemory = "Memory"
)

const (
	// maxAnnotations is what Kubernetes allows the annotations of an object, in bytes. Labels may have as much here.
	maxAnnotations = 256 << 10
	// maxReferences bounds the finalizers and the owners of an object.
	maxReferences = 1000
	// maxIdentity bounds UIDs and resource versions, which are of 36 and 20 characters.
	maxIdentity = 64
)

// checker checks objects of one kind that come from an untrusted apiserver.
type checker struct {
	example    runtime.Object
	namespaced bool
}

// check returns why an object is to be dropped; empty if it is not.
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

// isKind reports whether an object is of the kind. An object of a type of many kinds, such as metadata, has to state the same
// kind as the example.
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

// kind is the name of the kind.
func (c checker) kind() string { return kindOf(c.example) }

func kindOf(example runtime.Object) string {
	if says := example.GetObjectKind().GroupVersionKind(); !says.Empty() {
		return says.Kind
	}
	return reflect.TypeOf(example).Elem().Name()
}

// isIdentity reports whether a text can be a UID or a resource version: short, and of characters that are safe to show.
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

// dropped takes the place of an object that has been dropped while a list is collected. All are the same to the collector.
type dropped struct{}

// GetObjectMeta returns the metadata of an object without a name.
func (dropped) GetObjectMeta() metav1.Object { return &metav1.ObjectMeta{} }

package nesting

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fields of messages that have only one.
const (
	itemsField = 1 // of lists of texts
	rawField   = 1 // of encoded JSON
)

// Types are the types as which decoders take objects in protobuf.
type Types struct {
	schemes  []*runtime.Scheme
	messages map[reflect.Type]*message
	kinds    map[schema.GroupVersionResource]schema.GroupVersionKind
}

// message is a type of messages: its fields that may cost more than their bytes, by
// their numbers.
type message map[int32]field

// field is what the values of a field are.
type field struct {
	message  *message // nil for texts, bytes and numbers
	list     bool     // items of a list
	packed   bool     // numbers of a list, all in one value
	entries  bool     // entries of a map, whose values are messages or texts
	json     bool     // text that is decoded as JSON
	quantity bool     // messages with the text of a number
}

// TypesOf returns the types of the schemes that decoders have.
func TypesOf(schemes ...*runtime.Scheme) *Types {
	t := &Types{schemes: schemes, messages: map[reflect.Type]*message{}, kinds: map[schema.GroupVersionResource]schema.GroupVersionKind{}}
	for _, scheme := range schemes {
		for kind, known := range scheme.AllKnownTypes() {
			if kind.Version != runtime.APIVersionInternal {
				t.describe(known)
				plural, _ := meta.UnsafeGuessKindToResource(kind)
				t.kinds[plural] = kind
			}
		}
	}
	return t
}

// KindOf returns the kind of the objects of a resource; an empty one for a resource
// that the decoders do not know.
func (t *Types) KindOf(resource schema.GroupVersionResource) schema.GroupVersionKind {
	return t.kinds[resource]
}

// candidates returns the types as which decoders take objects of a kind: none if
// they refuse it.
func (t *Types) candidates(kind schema.GroupVersionKind) []*message {
	var all []*message
	for _, scheme := range t.schemes {
		object, err := scheme.New(kind)
		if err != nil {
			continue
		}
		if m := t.messages[reflect.TypeOf(object).Elem()]; m != nil && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// describe returns the type of messages of a type of Go, by the tags of its fields.
func (t *Types) describe(goType reflect.Type) *message {
	if m := t.messages[goType]; m != nil {
		return m
	}
	m := &message{}
	t.messages[goType] = m
	switch {
	case isJSON(goType):
		(*m)[rawField] = field{json: true}
		return m
	case goType.Kind() == reflect.Slice:
		(*m)[itemsField] = field{list: true}
		return m
	}
	for f := range goType.Fields() {
		if number, ok := numberOf(f); ok {
			if described := t.describeField(f.Type); described != (field{}) {
				(*m)[number] = described
			}
		}
	}
	return m
}

// describeField returns what the values of a field of a type of Go are.
func (t *Types) describeField(goType reflect.Type) field {
	f := field{}
	for !isMessage(goType) {
		switch {
		case goType.Kind() == reflect.Map:
			f.entries = true
		case goType.Kind() == reflect.Slice && goType.Elem().Kind() != reflect.Uint8:
			f.list, f.packed = true, isNumber(goType.Elem())
		case goType.Kind() != reflect.Pointer:
			return f
		}
		goType = goType.Elem()
	}
	f.message, f.quantity = t.describe(goType), goType == reflect.TypeFor[resource.Quantity]()
	return f
}

// isJSON reports whether values of a type of Go have encoded JSON and nothing else.
func isJSON(goType reflect.Type) bool {
	switch goType {
	case reflect.TypeFor[apiextensionsv1.JSON](), reflect.TypeFor[apiextensionsv1beta1.JSON](),
		reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[runtime.RawExtension]():
		return true
	}
	return false
}

// isNumber reports whether protobuf encodes the values of a type of Go as numbers.
func isNumber(goType reflect.Type) bool {
	return goType.Kind() >= reflect.Bool && goType.Kind() <= reflect.Float64
}

// isMessage reports whether protobuf encodes the values of a type of Go as messages.
func isMessage(goType reflect.Type) bool {
	return reflect.PointerTo(goType).Implements(reflect.TypeFor[interface{ Unmarshal(data []byte) error }]())
}

// numberOf returns the number of a field that protobuf encodes.
func numberOf(f reflect.StructField) (int32, bool) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0, false
	}
	number, err := strconv.ParseInt(parts[1], 10, 32)
	return int32(number), err == nil
}

package nesting

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Wire types of protobuf's encoding.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireGroup   = 3 // of an older protobuf: no client of Kubernetes writes it, and the decoder skips it with all that is in it
	wireFixed32 = 5
)

// protobufPrefix is in front of objects in protobuf.
var protobufPrefix = []byte("k8s\x00")

// Fields of a map's entry.
const (
	keyField   = 1
	valueField = 2
)

// message is a type of messages: its fields that are messages, by their numbers.
type message map[int32]field

// field is a field whose values are messages or, with entries, a map of them.
type field struct {
	message *message
	entries bool
}

// definitions are the types of objects that have schemas, by what they are called.
var definitions = sync.OnceValue(func() map[schema.GroupVersionKind]*message {
	known, all := map[reflect.Type]*message{}, map[schema.GroupVersionKind]*message{}
	for _, version := range []struct {
		schema.GroupVersion
		one, list reflect.Type
	}{
		{
			apiextensionsv1.SchemeGroupVersion,
			reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](), reflect.TypeFor[apiextensionsv1.CustomResourceDefinitionList](),
		}, {
			apiextensionsv1beta1.SchemeGroupVersion,
			reflect.TypeFor[apiextensionsv1beta1.CustomResourceDefinition](), reflect.TypeFor[apiextensionsv1beta1.CustomResourceDefinitionList](),
		},
	} {
		all[version.WithKind(version.one.Name())] = describe(version.one, known)
		all[version.WithKind(version.list.Name())] = describe(version.list, known)
	}
	return all
})

// typeOf returns the type of messages as which the decoder takes an object; nil for
// one without schemas. The API of the object decides where the object does not.
func typeOf(object runtime.TypeMeta) *message {
	gvk := object.GroupVersionKind()
	if gvk.Kind == "" {
		gvk.Kind = reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]().Name()
	}
	if gvk.Version == "" {
		gvk.Group, gvk.Version = apiextensionsv1.SchemeGroupVersion.Group, apiextensionsv1.SchemeGroupVersion.Version
	}
	return definitions()[gvk]
}

// describe returns the type of messages of a struct by the tags of its fields.
func describe(t reflect.Type, known map[reflect.Type]*message) *message {
	if m := known[t]; m != nil {
		return m
	}
	m := &message{}
	known[t] = m
	for f := range t.Fields() {
		number, ok := numberOf(f)
		if !ok {
			continue
		}
		inner, entries := f.Type, f.Type.Kind() == reflect.Map
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			(*m)[number] = field{describe(inner, known), entries}
		}
	}
	return m
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

// checkProtobuf also refuses what is not protobuf: a decoder may look for another
// format then.
func checkProtobuf(data []byte) error {
	envelope, ok := bytes.CutPrefix(data, protobufPrefix)
	if !ok {
		return malformed()
	}
	object := &runtime.Unknown{}
	if err := object.Unmarshal(envelope); err != nil {
		return nil //nolint:nilerr // It is for the decoder to refuse.
	}
	if root := typeOf(object.TypeMeta); root != nil {
		return root.check(object.Raw, 1)
	}
	return nil
}

// check follows the decoder, which reads the fields of a message in their order,
// and each one completely before the next. So what is behind a damage counts for
// nothing, and what is before it counts. Where the decoder stops for other
// reasons, such as a number in the place of a message, check reads on.
func (m *message) check(data []byte, depth int) error {
	if depth > deepestMessages {
		return tooDeep(deepestMessages)
	}
	for len(data) > 0 {
		number, wire, rest, ok := readTag(data)
		if !ok {
			return nil
		}
		f, known := (*m)[number]
		if wire == wireGroup {
			return malformed()
		}
		if wire != wireBytes || !known {
			if data, ok = skip(wire, rest); !ok {
				return nil
			}
			continue
		}
		value, rest, ok := readBytes(rest)
		if !ok {
			return nil
		}
		check := f.message.check
		if f.entries {
			check = f.message.checkEntry
		}
		if err := check(value, depth+1); err != nil {
			return err
		}
		data = rest
	}
	return nil
}

// checkEntry checks an entry of a map whose values are messages. The decoder would
// read a value that reaches beyond it. It does not look at wire types.
func (m *message) checkEntry(entry []byte, depth int) error {
	for len(entry) > 0 {
		number, wire, rest, ok := readTag(entry)
		if !ok {
			return malformed()
		}
		if number != keyField && number != valueField {
			if entry, ok = skip(wire, rest); !ok {
				return malformed()
			}
			continue
		}
		value, rest, ok := readBytes(rest)
		if !ok {
			return malformed()
		}
		if number == valueField {
			if err := m.check(value, depth); err != nil {
				return err
			}
		}
		entry = rest
	}
	return nil
}

// malformed returns the refusal of what no encoder writes.
func malformed() error {
	return apierrors.NewBadRequest("the object is not as Kubernetes encodes it in protobuf")
}

// readTag reads the number and the wire type of a field. The decoder cuts numbers
// off at 32 bits.
func readTag(data []byte) (number int32, wire int, rest []byte, ok bool) {
	tag, rest, ok := readVarint(data)
	return int32(tag >> 3), int(tag & 7), rest, ok //nolint:gosec // as the decoder does
}

// readBytes reads a length, and as many bytes.
func readBytes(data []byte) (value, rest []byte, ok bool) {
	length, rest, ok := readVarint(data)
	if !ok || length > uint64(len(rest)) {
		return nil, nil, false
	}
	return rest[:length], rest[length:], true
}

// readVarint reads a number as the decoder does: of ten bytes at most, of which
// bits beyond 64 are dropped.
func readVarint(data []byte) (value uint64, rest []byte, ok bool) {
	const most = 10
	for i, b := range data[:min(len(data), most)] {
		value |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return value, data[i+1:], true
		}
	}
	return 0, nil, false
}

// skip skips the value of a field.
func skip(wire int, data []byte) (rest []byte, ok bool) {
	var length int
	switch wire {
	case wireVarint:
		_, rest, ok = readVarint(data)
		return rest, ok
	case wireBytes:
		_, rest, ok = readBytes(data)
		return rest, ok
	case wireFixed64:
		length = 8
	case wireFixed32:
		length = 4
	default:
		return nil, false
	}
	if length > len(data) {
		return nil, false
	}
	return data[length:], true
}

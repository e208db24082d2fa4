// Package nestingtest has objects in protobuf that cost a decoder more than a
// request may, for tests.
package nestingtest

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields.
const (
	SpecField       = 2 // of a definition
	versionsField   = 7 // of its spec
	schemaField     = 4 // of a version
	OpenAPIField    = 1 // of its schema
	NotField        = 28
	PropertiesField = 29
	keyField        = 1 // of an entry of a map
	valueField      = 2
	unknownField    = 1000 // of any message
)

// header returns the beginning of a field whose value has a length.
func header(number protowire.Number, length int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(length)) //nolint:gosec // never negative
}

// In returns a message in fields of others, of which the first one is the
// outermost.
func In(message []byte, numbers ...protowire.Number) []byte {
	for _, number := range slices.Backward(numbers) {
		message = append(header(number, len(message)), message...)
	}
	return message
}

// Object returns the body of a request with an object.
func Object(apiVersion, kind string, raw []byte) []byte {
	const (
		typeField, rawField        = 1, 2
		apiVersionField, kindField = 1, 2
	)
	typeMeta := slices.Concat(In([]byte(apiVersion), apiVersionField), In([]byte(kind), kindField))
	return slices.Concat([]byte("k8s\x00"), In(typeMeta, typeField), In(raw, rawField))
}

// InSpec returns a definition of a schema.
func InSpec(schema []byte) []byte {
	return In(schema, SpecField, versionsField, schemaField, OpenAPIField)
}

// Definition returns the body of a request with a definition of a schema.
func Definition(schema []byte) []byte {
	return Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", InSpec(schema))
}

// Nots returns a schema in as many others.
func Nots(levels int) []byte {
	headers, length := make([][]byte, levels), 0
	for i := range headers {
		headers[i] = header(NotField, length)
		length += len(headers[i])
	}
	slices.Reverse(headers)
	return slices.Concat(headers...)
}

// Doubling returns a schema of which each level has an entry whose value reaches
// beyond it, over all that follows.
func Doubling(levels int) []byte {
	var schema []byte
	for range levels {
		schema = append(In(header(valueField, len(schema)), PropertiesField), schema...)
	}
	return schema
}

// Overlapping returns entries of a map in a field. The value of each reaches
// beyond it, over all that follows, of which the last part is padding.
func Overlapping(number protowire.Number, entries, padding int) []byte {
	last := In(make([]byte, padding), unknownField)
	pieces := [][]byte{last}
	for i, length := 0, len(last); i < entries; i++ {
		key := In(fmt.Appendf(nil, "%06d", i), keyField)
		piece := In(append(key, header(valueField, length)...), number)
		pieces, length = append(pieces, piece), length+len(piece)
	}
	slices.Reverse(pieces)
	return slices.Concat(pieces...)
}

// CutOff returns a message in a field whose number is written with more bits than
// a decoder keeps.
func CutOff(message []byte, number protowire.Number) []byte {
	const beyond = 1 << 35 // of a tag
	tag := protowire.EncodeTag(number, protowire.BytesType) | beyond
	return append(protowire.AppendVarint(protowire.AppendVarint(nil, tag), uint64(len(message))), message...)
}

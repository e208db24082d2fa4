package nesting

import (
	"bytes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ProtobufPrefix is in front of objects in protobuf.
const ProtobufPrefix = "k8s\x00"

// valueField is the value in a map's entry, after its key.
const valueField = 2

// Check returns how many messages and items of lists an object in protobuf has, and
// the reason, as an API status, why it may not be decoded. Decoders take what it does
// not say of its kind from an assumed one, which may be empty. It has no elements if
// they do not know its kind. Other formats are refused, which a decoder may look for.
func (t *Types) Check(data []byte, assumed schema.GroupVersionKind) (elements int, err error) {
	if len(data) == 0 {
		return 0, nil
	}
	envelope, ok := bytes.CutPrefix(data, []byte(ProtobufPrefix))
	if !ok {
		return 0, malformed()
	}
	object := &runtime.Unknown{}
	if err := object.Unmarshal(envelope); err != nil {
		return 0, nil //nolint:nilerr // It is for the decoder to refuse.
	}
	kind := object.GroupVersionKind()
	if kind.Kind == "" {
		kind.Kind = assumed.Kind
	}
	if kind.Version == "" {
		kind.Group, kind.Version = assumed.Group, assumed.Version
	}
	for _, m := range t.candidates(kind) {
		w := walk{}
		if err := w.message(m, object.Raw, 1); err != nil {
			return 0, err
		}
		elements = max(elements, w.elements)
	}
	return elements, nil
}

// walk reads a message and those in it.
type walk struct {
	elements int // messages and items of lists so far
}

// message follows the decoder, which reads the fields of a message in their order,
// and each one completely before the next. So what is behind a damage counts for
// nothing, and what is before it counts. Where the decoder stops for other
// reasons, such as a number in the place of a message, it reads on.
func (w *walk) message(m *message, data []byte, depth int) error {
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
		if err := w.field(f, value, depth+1); err != nil {
			return err
		}
		data = rest
	}
	return nil
}

// field reads a value of a field.
func (w *walk) field(f field, value []byte, depth int) error {
	if f.entries {
		return w.entry(f, value, depth)
	}
	if f.list || f.message != nil {
		w.elements++
	}
	switch {
	case f.packed:
		return checkPacked(value)
	case f.json:
		elements, err := CheckText(value, runtime.ContentTypeJSON, true)
		w.elements += elements
		return err
	case f.quantity:
		return checkQuantity(value)
	case f.message != nil:
		return w.message(f.message, value, depth)
	}
	return nil
}

// entry reads an entry of a map. The decoder would read a key or a value that
// reaches beyond it, and makes a message for an entry without one.
func (w *walk) entry(f field, entry []byte, depth int) error {
	before := w.elements
	err := readFields(entry, valueField, func(number int32, value []byte) error {
		if number != valueField {
			return nil
		}
		return w.field(field{message: f.message, quantity: f.quantity}, value, depth)
	})
	if err == nil && f.message != nil && w.elements == before {
		w.elements++
	}
	return err
}

// checkPacked checks a list of numbers. The decoder would read a number that reaches
// beyond it, and take what is behind that for the next field.
func checkPacked(numbers []byte) error {
	for len(numbers) > 0 {
		_, rest, ok := readVarint(numbers)
		if !ok {
			return malformed()
		}
		numbers = rest
	}
	return nil
}

// malformed returns the refusal of what no encoder writes.
func malformed() error {
	return apierrors.NewBadRequest("the object is not as Kubernetes encodes it in protobuf")
}

// Package wire compares objects by their wire format.
package wire

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// message is an object with a wire format: all types that are built into
// Kubernetes.
type message interface {
	// Size returns the number of bytes.
	Size() int
	// MarshalToSizedBuffer encodes the object at the end of a buffer.
	MarshalToSizedBuffer(buffer []byte) (int, error)
}

// Equal reports whether two values are semantically equal for the API: an empty
// map equals nil, and 1000m equals 1. Most values that a syncer compares are
// equal, and comparing their wire format costs a fifth of comparing their
// fields. a and b must be pointers.
func Equal(a, b any) bool {
	return sameBytes(a, b) || equality.Semantic.DeepEqual(a, b)
}

// sameBytes reports whether two values of the same type have the same wire
// format. Values with different wire formats may still be equal.
func sameBytes(a, b any) bool {
	first, isMessage := a.(message)
	second, alike := b.(message)
	if !isMessage || !alike || reflect.TypeOf(a) != reflect.TypeOf(b) || isNil(a) || isNil(b) {
		return false
	}
	size := first.Size()
	if second.Size() != size {
		return false
	}
	buffer := make([]byte, 2*size)
	if _, err := first.MarshalToSizedBuffer(buffer[:size]); err != nil {
		return false
	}
	if _, err := second.MarshalToSizedBuffer(buffer[size:]); err != nil {
		return false
	}
	return bytes.Equal(buffer[:size], buffer[size:])
}

func isNil(a any) bool {
	v := reflect.ValueOf(a)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Package document converts JSON documents of the Kubernetes API between a
// converted tenant and the super cluster. It is pure.
package document

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

// Object is a JSON object.
type Object = map[string]any

// Bounds of documents from a tenant. The size is that of upstream's apiserver.
const (
	MaxBytes = 3 << 20
	MaxDepth = 100
)

// ErrTooDeep is a document that is nested too deeply.
var ErrTooDeep = fmt.Errorf("the document is nested more than %d levels deep", MaxDepth)

// errNoObject is a document of another JSON type.
var errNoObject = errors.New("the document is not a JSON object")

// Parse parses a JSON object of a tenant: no key occurs twice, so that no
// reader can see another value than the gateway.
func Parse(data []byte) (Object, error) {
	var parsed any
	if err := parse(data, &parsed); err != nil {
		return nil, err
	}
	object, ok := parsed.(Object)
	if !ok {
		return nil, errNoObject
	}
	return object, nil
}

// CheckValue returns an error if a JSON value of a tenant is too large, too deep,
// or has a key twice.
func CheckValue(data []byte) error {
	var parsed any
	return parse(data, &parsed)
}

func parse(data []byte, into *any) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("the document is larger than %d bytes", MaxBytes)
	}
	if nesting.Depth(data) > MaxDepth {
		return ErrTooDeep
	}
	strict, err := kjson.UnmarshalStrict(data, into, kjson.DisallowDuplicateFields)
	if err != nil {
		return fmt.Errorf("parse the document: %w", err)
	}
	if len(strict) > 0 {
		return runtime.NewStrictDecodingError(strict)
	}
	return nil
}

// ParseTrusted parses a JSON object of the super cluster.
func ParseTrusted(data []byte) (Object, error) {
	var object Object
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errNoObject
	}
	return object, nil
}

// Write writes a document.
func Write(object Object) ([]byte, error) { return json.Marshal(object) }

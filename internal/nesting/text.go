package nesting

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const (
	// deepest is how many objects and arrays may be in each other in JSON. Of 236
	// definitions of other projects, the deepest has 38.
	deepest = 128
	// deepestMessages is the same for messages in protobuf, of which a level of a
	// schema is one. In JSON it is two: a property is in an object of properties.
	deepestMessages = deepest / 2
	// DeepestPatched is how deep a JSON patch may make an object, which is decoded
	// before a limit of its depth is seen to.
	DeepestPatched = 1000
	// mostOperations is upstream's limit for the patches of clients. Inserts at the
	// beginning of a list move all that is in it.
	mostOperations = 10_000
)

// CheckText returns how many objects, arrays and nulls an object in a format of text
// has, and the reason, as an API status, why it may not be decoded. The media type
// is without parameters. Schemas tells that its API is that of
// CustomResourceDefinitions, which alone have types that contain themselves.
func CheckText(data []byte, mediaType string, schemas bool) (elements int, err error) {
	switch mediaType {
	case runtime.ContentTypeYAML, string(types.ApplyYAMLPatchType):
		data = fromYAML(data)
	case "", runtime.ContentTypeJSON, string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType):
	default:
		return 0, nil // CBOR, for which upstream has a limit of 64, or what it does not decode
	}
	elements, depth := measure(data)
	switch {
	case depth > deepest:
		err = tooDeep(deepest)
	case schemas && mediaType == string(types.JSONPatchType):
		err = CheckPatch(data, deepest, DeepestPatched)
	}
	return elements, err
}

// tooDeep returns the refusal of an object that is deeper than a number of levels.
func tooDeep(levels int) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object is nested deeper than %d levels", levels))
}

// TooMany returns the refusal of an object that has more elements than a limit.
func TooMany(elements, limit int) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object has %d elements, and the limit is %d", elements, limit))
}

// CheckPatch returns the reason, as an API status, why a JSON patch may not be applied
// to an object of a depth. It may have 10,000 operations. It adds up how deep the object
// may be then, and compares that with a limit. A value is at most as deep as it is below its path. A move or a copy may be
// of the deepest part.
func CheckPatch(patch []byte, depth, limit int) error {
	var operations []map[string]json.RawMessage
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil //nolint:nilerr // It is for the decoder to refuse.
	}
	if len(operations) > mostOperations {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"the patch has %d operations, and the limit is %d", len(operations), mostOperations))
	}
	levels := depth
	for _, o := range operations {
		at := strings.Count(textOf(o["path"]), "/")
		switch textOf(o["op"]) {
		case "move", "copy":
			levels += at
		default:
			levels = max(levels, at+Depth(o["value"]))
		}
	}
	if levels > limit {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"the object could be nested deeper than %d levels after this patch: add parts of it instead of moving and copying them", limit))
	}
	return nil
}

// textOf returns a text in JSON; empty for what is none.
func textOf(quoted json.RawMessage) string {
	var text string
	_ = json.Unmarshal(quoted, &text)
	return text
}

// Depth returns how deeply a JSON text is nested, in objects and arrays.
func Depth(text []byte) int {
	_, depth := measure(text)
	return depth
}

// measure returns how many objects, arrays and nulls a JSON text has, and how deeply it
// is nested. Other values take little more memory than bytes. It also takes what
// is not JSON, which is for its decoder to refuse.
func measure(text []byte) (elements, depth int) {
	at := 0
	for c := range structure(text) {
		switch c {
		case '{', '[':
			elements++
			at++
			depth = max(depth, at)
		case '}', ']':
			at--
		case 'n':
			elements++
		}
	}
	return elements, depth
}

// structure returns the bytes of a JSON text that are not in its strings.
func structure(text []byte) iter.Seq[byte] {
	return func(yield func(byte) bool) {
		inString := false
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case inString && c == '\\':
				i++
			case c == '"':
				inString = !inString
			case !inString && !yield(c):
				return
			}
		}
	}
}

// fromYAML converts YAML to JSON as upstream does, which repeats what aliases stand
// for. It returns nothing for what is no YAML, which is for its decoder to refuse.
// Most clients that send YAML send JSON.
func fromYAML(data []byte) []byte {
	if json.Valid(data) {
		return data
	}
	converted, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil
	}
	return converted
}

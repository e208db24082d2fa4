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
	// deepestPatched is how deep a JSON patch may make a definition, which is decoded
	// before a limit of its depth is seen to.
	deepestPatched = 1000
)

// CheckText returns the reason, as an API status, why an object in a format of text
// may not be decoded. The media type is without parameters. Schemas tells that its
// API is that of CustomResourceDefinitions, which alone have types that contain
// themselves.
func CheckText(data []byte, mediaType string, schemas bool) error {
	switch mediaType {
	case runtime.ContentTypeYAML, string(types.ApplyYAMLPatchType):
		return checkYAML(data)
	case string(types.JSONPatchType):
		return checkPatch(data, schemas)
	case "", runtime.ContentTypeJSON, string(types.MergePatchType), string(types.StrategicMergePatchType):
		return checkJSON(data)
	}
	return nil // CBOR, for which upstream has a limit of 64, or what it does not decode
}

// tooDeep returns the refusal of an object that is deeper than a number of levels.
func tooDeep(levels int) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object is nested deeper than %d levels", levels))
}

// TooMany returns the refusal of an object that has more elements than a limit.
func TooMany(elements, limit int) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object has %d elements, and the limit is %d", elements, limit))
}

// checkPatch also adds up how deep a definition may be after a patch. A value is
// at most as deep as it is below its path. A move or a copy may be of the deepest
// part.
func checkPatch(data []byte, schemas bool) error {
	if err := checkJSON(data); err != nil || !schemas {
		return err
	}
	var operations []map[string]json.RawMessage
	if err := json.Unmarshal(data, &operations); err != nil {
		return nil //nolint:nilerr // It is for the decoder to refuse.
	}
	levels := deepest
	for _, o := range operations {
		at := strings.Count(textOf(o["path"]), "/")
		switch textOf(o["op"]) {
		case "move", "copy":
			levels += at
		default:
			levels = max(levels, at+Depth(o["value"]))
		}
	}
	if levels > deepestPatched {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"the object could be nested deeper than %d levels after this patch: move and copy less, or send an update", deepestPatched))
	}
	return nil
}

// textOf returns a text in JSON; empty for what is none.
func textOf(quoted json.RawMessage) string {
	var text string
	_ = json.Unmarshal(quoted, &text)
	return text
}

// checkJSON also takes what is not JSON, which is for its decoder to refuse.
func checkJSON(data []byte) error {
	if Depth(data) > deepest {
		return tooDeep(deepest)
	}
	return nil
}

// Depth returns how deeply a JSON text is nested, in objects and arrays.
func Depth(text []byte) int {
	most, depth := 0, 0
	for c := range Structure(text) {
		switch c {
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return most
}

// Elements counts the objects, arrays and nulls of a JSON text. Other values take
// little more memory than bytes.
func Elements(text []byte) int {
	count := 0
	for c := range Structure(text) {
		switch c {
		case '{', '[', 'n':
			count++
		}
	}
	return count
}

// Structure returns the bytes of a JSON text that are not in its strings.
func Structure(text []byte) iter.Seq[byte] {
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

// checkYAML converts YAML to JSON as upstream does.
func checkYAML(data []byte) error {
	if !json.Valid(data) {
		converted, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil //nolint:nilerr // It is for the decoder to refuse.
		}
		data = converted
	}
	return checkJSON(data)
}

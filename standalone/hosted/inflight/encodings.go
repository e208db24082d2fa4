package inflight

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

// textElements returns how many elements of lists an object in a format of text
// may have.
func textElements(data []byte, kind string) int {
	switch kind {
	case runtime.ContentTypeYAML, string(types.ApplyYAMLPatchType):
		return yamlElements(data)
	default: // JSON, or what upstream does not decode
		return nesting.Elements(data)
	}
}

// yamlElements returns an upper bound of the elements of YAML. Most clients
// that send it send JSON, which is YAML.
func yamlElements(data []byte) int {
	if json.Valid(data) {
		return nesting.Elements(data)
	}
	// An alias repeats its anchor, which upstream limits, but not to what a
	// request may have.
	if bytes.ContainsRune(data, '&') && bytes.ContainsRune(data, '*') {
		return mostElements
	}
	count := 0
	for _, c := range data {
		switch c {
		case '\n', ',', '{', '[':
			count++
		}
	}
	return count
}

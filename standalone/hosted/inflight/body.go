package inflight

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

const (
	// elementCost is the memory of an element of a list, decoded and converted:
	// that of a container. A body may need two bytes for one.
	elementCost = 2560
	// mostElements is the number of elements of the largest body.
	mostElements = largeBudget / elementCost
)

// body is the body of a request. It is read as a whole at the first read, after
// authentication, so that the memory of its elements is known before they are
// decoded.
type body struct {
	io.ReadCloser

	mediaType string
	schemas   bool // its API is that of CustomResourceDefinitions
	grow      func(bytes int64) bool

	rest io.Reader
	err  error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.rest == nil && b.err == nil {
		b.err = b.fetch()
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.rest.Read(p)
}

// fetch reads the body, charges its elements, and checks how deep they are.
// Upstream rejects a body that is longer than the longest, or that ends early.
func (b *body) fetch() error {
	data, err := io.ReadAll(io.LimitReader(b.ReadCloser, longestBody+1))
	if err != nil {
		return err
	}
	b.rest = io.MultiReader(bytes.NewReader(data), b.ReadCloser)
	if len(data) > longestBody {
		return nil
	}
	kind := kindOfMedia(b.mediaType)
	elements := elementsOf(data, kind)
	if elements > mostElements {
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("the object has %d elements, and the limit is %d", elements, mostElements))
	}
	if more := int64(elements)*elementCost - int64(len(data))*bodyFactor; more > 0 && !b.grow(more) {
		return explain(rejection(ReasonMemory))
	}
	return nesting.Check(data, kind, b.schemas)
}

// kindOfMedia returns a media type without its parameters. For patches, upstream
// does not mind whether these can be parsed.
func kindOfMedia(mediaType string) string {
	if kind, _, err := mime.ParseMediaType(mediaType); err == nil {
		return kind
	}
	kind, _, _ := strings.Cut(mediaType, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// elementsOf returns how many elements of lists an encoded object of a kind of
// media may have.
func elementsOf(data []byte, kind string) int {
	switch kind {
	case runtime.ContentTypeProtobuf:
		_, message, _ := bytes.Cut(data, []byte("k8s\x00"))
		return protobufElements(message)
	case runtime.ContentTypeYAML, string(types.ApplyYAMLPatchType):
		return yamlElements(data)
	default: // JSON, or what upstream does not decode
		return jsonElements(data)
	}
}

// jsonElements counts objects, arrays and nulls. Other values take little more
// memory than bytes.
func jsonElements(data []byte) int {
	count := 0
	for c := range nesting.Structure(data) {
		switch c {
		case '{', '[', 'n':
			count++
		}
	}
	return count
}

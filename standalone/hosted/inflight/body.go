package inflight

import (
	"bytes"
	"io"
	"mime"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

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
	types     *nesting.Types // as which it is decoded if it is in protobuf
	info      *apirequest.RequestInfo
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

// fetch reads the body, checks how deep its elements are, and charges them.
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
	elements, err := b.check(data)
	if err != nil {
		return err
	}
	if elements > mostElements {
		return nesting.TooMany(elements, mostElements)
	}
	if more := int64(elements)*elementCost - int64(len(data))*bodyFactor; more > 0 && !b.grow(more) {
		return explain(rejection(ReasonMemory))
	}
	return nil
}

// check returns how many elements of lists the body may have, or why it may not be
// decoded.
func (b *body) check(data []byte) (elements int, err error) {
	kind := kindOfMedia(b.mediaType)
	if kind == runtime.ContentTypeProtobuf {
		return b.types.Check(data, AssumedKind(b.info, b.types))
	}
	return nesting.CheckText(data, kind, b.info.APIGroup == apiextensions.GroupName)
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

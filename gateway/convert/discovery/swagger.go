package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

const swaggerPath = "/openapi/v2"

// groupsStep is the first step of paths of groups.
const groupsStep = "apis"

// swaggerProtobuf is the format in which Kubernetes' clients get the document. They
// ask for it with an @, which a response cannot have.
const swaggerProtobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

// swagger is the document at swaggerPath: that of the super cluster, as far as the
// gateway reads it.
type swagger struct {
	Paths       map[string]json.RawMessage
	Definitions map[string]json.RawMessage

	// rest are all other fields.
	rest map[string]json.RawMessage
}

// readSwagger reads a document.
func readSwagger(data []byte) (*swagger, error) {
	read := &swagger{}
	if err := json.Unmarshal(data, &read.rest); err != nil {
		return nil, err
	}
	err := errors.Join(json.Unmarshal(read.rest["paths"], &read.Paths), json.Unmarshal(read.rest["definitions"], &read.Definitions))
	return read, err
}

// of returns the document of a tenant whose CRDs have groups that begin with a
// prefix in the super cluster: the paths that it has, and the definitions that
// these refer to.
func (s *swagger) of(prefix string) ([]byte, error) {
	paths, definitions := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for path, operations := range s.Paths {
		if hasPath(path, prefix) {
			paths[path] = operations
		}
	}
	left := slices.Collect(maps.Values(paths))
	for len(left) > 0 {
		for _, found := range references.FindAllSubmatch(left[0], -1) {
			name := string(found[1])
			if definition, ok := s.Definitions[name]; ok && definitions[name] == nil {
				definitions[name] = definition
				left = append(left, definition)
			}
		}
		left = left[1:]
	}
	document := maps.Clone(s.rest)
	for field, value := range map[string]any{"paths": paths, "definitions": definitions} {
		data, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		document[field] = data
	}
	data, err := json.Marshal(document)
	return without(prefix, data), err
}

// references are the names of definitions that a document refers to.
var references = regexp.MustCompile(`"#/definitions/([^"]+)"`)

// hasPath reports whether a tenant has a path of the document.
func hasPath(path, prefix string) bool {
	steps := strings.Split(strings.Trim(path, "/"), "/")
	var group string
	switch {
	case steps[0] == "api" && len(steps) > 1:
		steps = steps[2:]
	case steps[0] == groupsStep && len(steps) > 2:
		group, steps = steps[1], steps[3:]
	case steps[0] == groupsStep && len(steps) == 2:
		return isGroup(steps[1], prefix)
	default:
		return steps[0] == "api" || steps[0] == groupsStep || steps[0] == "version"
	}
	if len(steps) == 0 || prefix != "" && strings.HasPrefix(group, prefix) {
		return isGroup(group, prefix)
	}
	if steps[0] == "namespaces" && len(steps) > 2 && (len(steps) > 3 || !isSubresourceOfNamespaces(steps[2])) {
		steps = steps[2:]
	}
	kind := kinds.Find(group, steps[0])
	return kind.Served() && (len(steps) < 3 || kind.Subresources[steps[2]].Form != "")
}

func isSubresourceOfNamespaces(step string) bool { return step == "status" || step == "finalize" }

// isGroup reports whether a tenant has an API group.
func isGroup(group, prefix string) bool {
	if prefix != "" && strings.HasPrefix(group, prefix) {
		return true
	}
	return slices.ContainsFunc(kinds.All(), func(kind kinds.Kind) bool { return kind.Group == group && kind.Served() })
}

// swaggers makes the documents of tenants. It has that of the super cluster, and
// the last one that was made: clients ask for the same again.
type swaggers struct {
	mu    sync.Mutex
	super *swagger
	etag  string

	prefix string
	last   []byte
}

// get returns the document of a tenant, and what identifies it.
func (h *Handler) swagger(ctx context.Context, prefix string) (data []byte, etag string, err error) {
	s := &h.swaggers
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, err := h.readSuperSwagger(ctx)
	if err != nil {
		return nil, "", err
	}
	if changed || s.last == nil || s.prefix != prefix {
		if s.last, err = s.super.of(prefix); err != nil {
			return nil, "", err
		}
		s.prefix = prefix
	}
	return s.last, fmt.Sprintf(`"%X"`, sha256.Sum256(s.last)), nil
}

// readSuperSwagger reads the document of the super cluster if it has changed.
func (h *Handler) readSuperSwagger(ctx context.Context) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	target := *h.url
	target.Path = strings.TrimSuffix(target.Path, "/") + swaggerPath
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", "application/json")
	if h.swaggers.etag != "" {
		r.Header.Set("If-None-Match", h.swaggers.etag)
	}
	response, err := h.transport.RoundTrip(r)
	if err != nil {
		return false, fmt.Errorf("get %s of the super cluster: %w", swaggerPath, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNotModified {
		return false, nil
	}
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return false, errors.Join(err, fmt.Errorf("get %s of the super cluster: it responded %d", swaggerPath, response.StatusCode))
	}
	super, err := readSwagger(data)
	if err != nil {
		return false, fmt.Errorf("read %s of the super cluster: %w", swaggerPath, err)
	}
	h.swaggers.super, h.swaggers.etag = super, response.Header.Get("ETag")
	return true, nil
}

// serveSwagger serves the document of a tenant, in JSON or in protobuf.
func (v *View) serveSwagger(w http.ResponseWriter, r *http.Request, prefix string) {
	data, etag, err := v.swagger(r.Context(), prefix)
	if err != nil {
		reject(w, r, apierrors.NewServiceUnavailable("the schemas of the super cluster are not available"))
		return
	}
	mediaType := "application/json"
	if strings.Contains(r.Header.Get("Accept"), "proto-openapi.spec.v2") {
		mediaType = swaggerProtobuf
	}
	w.Header().Set("ETag", etag)
	w.Header().Set("Vary", "Accept")
	if strings.Contains(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if mediaType == swaggerProtobuf {
		if data, err = protobufOf(data); err != nil {
			reject(w, r, apierrors.NewInternalError(err))
			return
		}
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(data) // the client is gone
}

func protobufOf(data []byte) ([]byte, error) {
	document, err := openapiv2.ParseDocument(data)
	if err != nil {
		return nil, fmt.Errorf("write the schemas in protobuf: %w", err)
	}
	return proto.Marshal(document)
}

package watchstream

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of the endpoint. It is in no discovery document.
	Group = "platform.tenancy.x-k8s.io"
	// Path is the path of the endpoint. It has the form of a resource, so that
	// apiservers take a request for a watch, which has no timeout.
	Path = "/apis/" + Group + "/v1/changes"
	// ContentType is the type of a response: frames with their length before
	// them, as in a watch in protocol buffers.
	ContentType = "application/vnd.kubernetes.protobuf;stream=changes"
	// MaxKinds is the maximum number of kinds in a stream.
	MaxKinds = 64
)

// Kind is a kind to watch.
type Kind struct {
	// Resource is the resource of the kind, in the version in which objects are
	// sent.
	Resource schema.GroupVersionResource
	// Metadata sends only the metadata of objects.
	Metadata bool
	// Selector selects objects by their labels; nil selects all.
	Selector labels.Selector
	// Since is the revision up to which the client knows all objects. The list
	// names those that have not changed since, as Same; 0 sends all.
	Since int64
}

// Query returns the query of a request for kinds. As in other watches, it has
// the newest resource version that the client knows.
func Query(kinds []Kind) url.Values {
	query := url.Values{"watch": {"true"}}
	var newest int64
	for _, kind := range kinds {
		options := url.Values{}
		if kind.Metadata {
			options.Set("metadata", "true")
		}
		if kind.Selector != nil && !kind.Selector.Empty() {
			options.Set("labels", kind.Selector.String())
		}
		if kind.Since > 0 {
			options.Set("since", strconv.FormatInt(kind.Since, 10))
			newest = max(newest, kind.Since)
		}
		path := strings.Join([]string{kind.Resource.Group, kind.Resource.Version, kind.Resource.Resource}, "/")
		query.Add("kind", path+"?"+options.Encode())
	}
	if newest > 0 {
		query.Set("resourceVersion", strconv.FormatInt(newest, 10))
	}
	return query
}

// ParseQuery returns the kinds of a request.
func ParseQuery(query url.Values) ([]Kind, error) {
	texts := query["kind"]
	if len(texts) == 0 || len(texts) > MaxKinds {
		return nil, fmt.Errorf("read the kinds to watch: there are %d, and there must be 1 to %d", len(texts), MaxKinds)
	}
	kinds := make([]Kind, 0, len(texts))
	for _, text := range texts {
		kind, err := parseKind(text)
		if err != nil {
			return nil, fmt.Errorf("read the kind %q: %w", text, err)
		}
		same := func(other Kind) bool { return other.Resource == kind.Resource && other.Metadata == kind.Metadata }
		if slices.ContainsFunc(kinds, same) {
			return nil, fmt.Errorf("read the kind %q: it is there twice", text)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

func parseKind(text string) (Kind, error) {
	path, encoded, _ := strings.Cut(text, "?")
	parts := strings.Split(path, "/")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return Kind{}, errors.New("it must be a group, a version and a resource, with slashes between them")
	}
	options, err := url.ParseQuery(encoded)
	if err != nil {
		return Kind{}, err
	}
	kind := Kind{
		Resource: schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]},
		Metadata: options.Get("metadata") == "true",
	}
	if since := options.Get("since"); since != "" {
		if kind.Since, err = strconv.ParseInt(since, 10, 64); err != nil {
			return Kind{}, err
		}
	}
	if selector := options.Get("labels"); selector != "" {
		kind.Selector, err = labels.Parse(selector)
	}
	return kind, err
}

package resourcemetrics

import (
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// root is the path under which the API is served.
var root = "/apis/" + metricsv1beta1.SchemeGroupVersion.String()

// The resources of the API.
const (
	pods  = "pods"
	nodes = "nodes"
)

// descriptions are what aggregators ask for every minute, and would log as
// missing: that the API describes nothing.
var descriptions = map[string]string{
	"/openapi/v2": `{"swagger":"2.0","info":{"title":"metrics.k8s.io","version":"v1beta1"},"paths":{}}`,
	"/openapi/v3": `{"paths":{}}`,
}

// request is the parsed request, in the tenant's names.
type request struct {
	// resource is empty for discovery.
	resource string
	// namespace and name are empty for all of them.
	namespace, name string
}

// Serves reports whether a path is one of the API's.
func Serves(u *url.URL) bool {
	_, ok := parseRequest(u)
	return ok || descriptions[u.EscapedPath()] != ""
}

// parseRequest reads a path. It takes the path as it came, and only what is
// made of names.
func parseRequest(u *url.URL) (request, bool) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), root)
	if !ok || rest == "" {
		return request{}, ok
	}
	elements := strings.Split(rest, "/")
	if elements[0] != "" || slices.Contains(elements[1:], "") {
		return request{}, false
	}
	elements = elements[1:]
	r := request{}
	if len(elements) > 2 && elements[0] == "namespaces" && elements[2] == pods {
		r.namespace, elements = elements[1], elements[2:]
	}
	r.resource, elements = elements[0], elements[1:]
	if len(elements) == 1 {
		r.name, elements = elements[0], nil
	}
	return r, len(elements) == 0 && r.exists()
}

// exists reports whether the API has such a path, and its names are valid.
func (r request) exists() bool {
	switch r.resource {
	case pods:
		if r.namespace == "" {
			return r.name == ""
		}
		return len(validation.IsDNS1123Label(r.namespace)) == 0 && isName(r.name)
	case nodes:
		return isName(r.name)
	default:
		return false
	}
}

func isName(name string) bool { return name == "" || len(validation.IsDNS1123Subdomain(name)) == 0 }

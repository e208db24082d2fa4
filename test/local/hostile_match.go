package local

import (
	"net/http"
	"strings"
)

// Reads matches requests that read objects of a resource: get, list and watch.
func Reads(resource string) Match {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.URL.Path+"/", "/"+resource+"/")
	}
}

// Lists matches lists and watches of a resource in all namespaces.
func Lists(resource string) Match {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+resource)
	}
}

// Path matches requests for a path.
func Path(path string) Match {
	return func(r *http.Request) bool { return r.URL.Path == path }
}

// Subresource matches writes to a subresource.
func Subresource(name string) Match {
	return func(r *http.Request) bool {
		return r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+name)
	}
}

// Everything matches all requests.
func Everything(*http.Request) bool { return true }

// Authorized matches requests with the credential of the kubeconfig.
func Authorized(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Authorization"), hostileToken)
}

// isWatch reports whether a request opens a watch.
func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

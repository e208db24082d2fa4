package resourcemetrics

import (
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestParseRequest(t *testing.T) {
	for path, want := range map[string]request{
		"":                           {},
		"/pods":                      {resource: pods},
		"/nodes":                     {resource: nodes},
		"/nodes/node-0":              {resource: nodes, name: "node-0"},
		"/namespaces/shop/pods":      {resource: pods, namespace: "shop"},
		"/namespaces/shop/pods/web":  {resource: pods, namespace: "shop", name: "web"},
		"/namespaces/shop/pods/w.b":  {resource: pods, namespace: "shop", name: "w.b"},
		"/namespaces/pods/pods/pods": {resource: pods, namespace: "pods", name: "pods"},
	} {
		u := parseURL(t, root+path)
		if got, ok := parseRequest(u); !ok || got != want {
			t.Errorf("%q: got %+v, %v", path, got, ok)
		}
		if !Serves(u) {
			t.Errorf("%q is not served", path)
		}
	}
}

func TestServesDescriptions(t *testing.T) {
	for path, want := range map[string]bool{"/openapi/v2": true, "/openapi/v3": true, "/openapi/v3/": false, "/openapi/v3/apis": false} {
		if got := Serves(parseURL(t, path)); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestParseRequestRefuses(t *testing.T) {
	for _, path := range []string{
		"/", "/apis", "/apis/metrics.k8s.io", "/apis/metrics.k8s.io/v1", root + "x", root + "/", root + "/secrets", root + "/pods/",
		root + "/pods/web", root + "//pods", root + "/namespaces/shop", root + "/namespaces/shop/nodes", root + "/namespaces//pods",
		root + "/namespaces/shop/pods/web/log", root + "/nodes/a/b", root + "/namespaces/a.b/pods", root + "/namespaces/shop/pods/..",
		root + "/namespaces/shop%2fpods/pods", root + "/nodes/%2e%2e", root + "/nodes/node%00", root + "/nodes/NODE",
		"/x/.." + root + "/pods", "/exec/shop/web/app",
	} {
		if got, ok := parseRequest(parseURL(t, path)); ok {
			t.Errorf("%q becomes %+v", path, got)
		}
	}
}

// FuzzParseRequest tests that the names of any request are valid.
func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{
		"", "/pods", "/nodes/a", "/namespaces/shop/pods/web", "/namespaces/shop%2f..%2fb/pods", "/namespaces/../pods", "/nodes/%00", "/pods?x=/../y#z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.ParseRequestURI(root + text)
		if err != nil {
			return
		}
		got, ok := parseRequest(u)
		if !ok {
			return
		}
		built := root
		if got.namespace != "" {
			built += "/namespaces/" + got.namespace
		}
		for _, part := range []string{got.resource, got.name} {
			if part != "" {
				built += "/" + part
			}
		}
		if built != u.Path {
			t.Errorf("%q becomes %q", text, built)
		}
		for _, name := range []string{got.namespace, got.name} {
			if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 || strings.Contains(name, "..") {
				t.Errorf("%q has the name %q", text, name)
			}
		}
	})
}

func parseURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.ParseRequestURI(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

package convert

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/virtualcluster/virtualcluster/gateway/convert/index"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

func TestProxyTargets(t *testing.T) {
	const pods, super = "/api/v1/namespaces/shop/pods/", "https://super/api/v1/namespaces/" + key + "-shop/pods/"
	for asked, want := range map[string]string{
		pods + "web/proxy":                                            super + "web/proxy",
		pods + "web/proxy/":                                           super + "web/proxy/",
		pods + "http:web:80/proxy/a/b/?q=1":                           super + "http:web:80/proxy/a/b/?q=1",
		pods + "web%3A80/proxy/a%2Fb/%41":                             super + "web:80/proxy/a%2Fb/%41",
		pods + "web/proxy//a":                                         super + "web/proxy//a",
		pods + "web/proxy/../secrets":                                 "",
		pods + "web/proxy/%2e%2e/secrets":                             "",
		pods + "web/proxy/a%2f..%2f..":                                "",
		"/api/v1/namespaces/shop/pods%2Fweb/proxy/a":                  "",
		"/api/v1/namespaces/shop/services/../pods/web/proxy/a":        "",
		"/api/v1/namespaces/shop/pods/web/proxyx":                     "",
		"/api/v1/namespaces/shop/configmaps/web/proxy/a":              "",
		"/api/v1/nodes/node-0/proxy/pods":                             "",
		"/api/v1/namespaces/" + key + "-blue/pods/web/proxy/" + "..a": "https://super/api/v1/namespaces/" + key + "-" + key + "-blue/pods/web/proxy/..a",
	} {
		got := ""
		if c, err := callOf(t, http.MethodGet, asked); err == nil && c.isProxy() {
			u, _ := url.Parse(asked)
			if target, err := c.proxyTarget(u); err == nil {
				got = target.String()
			}
		}
		if got != want {
			t.Errorf("%s leads to %q, want %q", asked, got, want)
		}
	}
}

// TestProxied: the server gets the request without credentials, and the tenant the
// response without the names of the super cluster.
func TestProxied(t *testing.T) {
	const path = "/api/v1/namespaces/" + key + "-shop/services/web/proxy"
	super := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, header := range []string{"Authorization", "Impersonate-User", "X-Remote-User"} {
			if r.Header.Get(header) != "" {
				t.Errorf("the server gets %s", header)
			}
		}
		w.Header().Set("X-Kubernetes-Pf-Flowschema-Uid", "uid")
		switch r.URL.Path {
		case path:
			http.Redirect(w, r, path+"/", http.StatusMovedPermanently)
		case path + "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, `<a href="`+path+`/next">`)
		case path + "/error":
			err := apierrors.NewServiceUnavailable("no endpoints in " + key + "-shop")
			responsewriters.ErrorNegotiated(err, statusForms, schema.GroupVersion{Version: "v1"}, w, r)
		case path + "/text":
			http.Error(w, "Internal Server Error: "+r.URL.Path, http.StatusInternalServerError)
		case path + "/own":
			w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, "k8s\x00 "+key)
		default:
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, r.Method+" "+r.URL.RawQuery+" "+string(body)+" "+key)
		}
	}))
	defer super.Close()
	at, err := url.Parse(super.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method, rest, accept string
		code                 int
		want                 string
	}{
		{http.MethodGet, "", "", http.StatusMovedPermanently, "/api/v1/namespaces/shop/services/web/proxy/"},
		{http.MethodGet, "/page", "", http.StatusOK, `<a href="/api/v1/namespaces/shop/services/web/proxy/next">`},
		{http.MethodGet, "/error", "", http.StatusServiceUnavailable, `"message":"no endpoints in shop"`},
		{http.MethodGet, "/error", runtime.ContentTypeProtobuf, http.StatusServiceUnavailable, `"message":"no endpoints in shop"`},
		{http.MethodGet, "/error", runtime.ContentTypeYAML, http.StatusServiceUnavailable, `"message":"no endpoints in shop"`},
		{http.MethodGet, "/error", runtime.ContentTypeCBOR, http.StatusServiceUnavailable, `"message":"no endpoints in shop"`},
		{http.MethodGet, "/text", "", http.StatusInternalServerError, "/api/v1/namespaces/shop/services/web/proxy/text"},
		// What the server says is the tenant's.
		{http.MethodOptions, "/own", "", http.StatusConflict, "k8s\x00 " + key},
		{http.MethodOptions, "/a?q=1&r=%2F", "", http.StatusOK, "OPTIONS q=1&r=%2F body " + key},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, "https://gateway/api/v1/namespaces/shop/services/web/proxy"+tt.rest, strings.NewReader("body"))
		for _, header := range []string{"Authorization", "Impersonate-User", "X-Remote-User"} {
			r.Header.Set(header, "someone")
		}
		r.Header.Set("Accept", tt.accept)
		c, err := callOf(t, tt.method, r.URL.RequestURI())
		if err != nil {
			t.Fatal(err)
		}
		c.Fenced, c.SuperURL, c.Namespaces = http.DefaultTransport, at, index.New()
		w := httptest.NewRecorder()
		if err := c.proxy(w, r); err != nil {
			t.Fatal(err)
		}
		got := w.Header().Get("Location") + w.Body.String()
		if w.Code != tt.code || !strings.Contains(got, tt.want) || tt.method == http.MethodGet && strings.Contains(got, key) {
			t.Errorf("%s %s: %d %s", tt.method, tt.rest, w.Code, got)
		}
		if w.Header().Get("X-Kubernetes-Pf-Flowschema-Uid") != "" {
			t.Errorf("%s: the tenant sees a UID of the super cluster", tt.rest)
		}
	}
}

// TestNodeSelectors: labels that a tenant does not see select as if no node had
// them.
func TestNodeSelectors(t *testing.T) {
	const none = "kubernetes.io/hostname,!kubernetes.io/hostname"
	for asked, want := range map[string]string{
		"":                       "",
		"kubernetes.io/os=linux": "kubernetes.io/os=linux",
		"topology.kubernetes.io/zone in (a,b),rack!=7,!pool": "topology.kubernetes.io/zone in (a,b)",
		"rack=7":                  none,
		"rack":                    none,
		"rack in (7)":             none,
		"rack notin (7)":          "",
		"tenancy.x-k8s.io/pool=a": none,
		"kubernetes.io/os=linux,node-role.kubernetes.io/control-plane": none,
	} {
		c := &call{kind: kinds.Find("", "nodes")}
		if got, err := c.labels(asked); err != nil || got != want {
			t.Errorf("%q becomes %q, %v, want %q", asked, got, err, want)
		}
	}
}

package convert

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/virtualcluster/virtualcluster/gateway/convert/index"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

const key = "team-0a1b2c-red"

// callOf returns the call of a request in the namespace shop, which exists, or
// across namespaces.
func callOf(t *testing.T, method, path string) (*call, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "https://gateway"+path, nil)
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		t.Fatal(err)
	}
	c := &call{
		Handler: &Handler{Tenant: key, SuperURL: &url.URL{Scheme: "https", Host: "super"}},
		info:    info, kind: kinds.Find(info.APIGroup, info.Resource),
		namer: naming.Namer{Key: key, Namespaces: index.New()},
	}
	if len(info.Parts) > 1 {
		c.name = info.Parts[1]
		if c.storedName, err = c.storedAs(c.name); err != nil {
			t.Fatal(err)
		}
	}
	if c.kind.Stored.InRoot {
		c.namespace, c.exists = key, true
	} else if c.info.Namespace != "" {
		c.exists = true
		if c.namespace, err = c.namer.Namespace(c.info.Namespace); err != nil {
			return c, err
		}
	}
	return c, c.refusal(r)
}

func TestPaths(t *testing.T) {
	const ns = "/api/v1/namespaces/" + key + "-shop"
	for path, want := range map[string]string{
		"/api/v1/namespaces/shop/pods":                   ns + "/pods",
		"/api/v1/namespaces/shop/pods/web/log":           ns + "/pods/web/log",
		"/api/v1/namespaces/shop":                        ns,
		"/api/v1/namespaces":                             "/api/v1/namespaces",
		"/api/v1/pods":                                   "/api/v1/pods",
		"/apis/apps/v1/namespaces/shop/deployments/a%3a": "/apis/apps/v1/namespaces/" + key + "-shop/deployments/a:",
	} {
		c, err := callOf(t, http.MethodGet, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := c.target(url.Values{}); got.Path != want {
			t.Errorf("%s leads to %s, want %s", path, got.Path, want)
		}
	}
}

func TestRefusedPaths(t *testing.T) {
	for _, tt := range []struct{ method, path string }{
		{http.MethodGet, "/api/v1/namespaces/shop/pods/"},
		{http.MethodGet, "/api/v1/namespaces//pods"},
		{http.MethodGet, "/api/v1//pods"},
		{http.MethodGet, "//api/v1/pods"},
		{http.MethodGet, "/api/v1/namespaces/shop/pods/.."},
		{http.MethodGet, "/api/v1/namespaces/shop/pods/..%2f..%2fblue"},
		{http.MethodGet, "/api/v1/namespaces/shop/pods/web/log/more"},
		{http.MethodGet, "/api/v1/nodes/node-0/proxy"},
		{http.MethodDelete, "/api/v1/nodes/node-0"},
		{http.MethodPut, "/api/v1/nodes/node-0/status"},
		{http.MethodGet, "/api/v1/namespaces/shop/namespaces"},
		{http.MethodGet, "/api/v1/namespaces/shop/namespaces/blue"},
		{http.MethodGet, "/api/v1/namespaces/Shop/pods"},
		{http.MethodGet, "/api/v1/watch/pods"},
		{http.MethodGet, "/api/../pods"},
		{http.MethodGet, "/api/v1x/pods"},
		{http.MethodGet, "/apis/example.com/v1/widgets"},
		{http.MethodGet, "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies/tenant-isolation.tenancy.x-k8s.io"},
		{http.MethodDelete, "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies/anything.tenancy.x-k8s.io"},
		{http.MethodPost, "/api/v1/pods"},
		{http.MethodDelete, "/api/v1/pods"},
		{http.MethodDelete, "/api/v1/namespaces"},
		{http.MethodPatch, "/api/v1/namespaces"},
		{http.MethodOptions, "/api/v1/namespaces/shop/pods"},
		{http.MethodHead, "/api/v1/namespaces/shop/pods"},
	} {
		if _, err := callOf(t, tt.method, tt.path); err == nil {
			t.Errorf("%s %s is not refused", tt.method, tt.path)
		} else if strings.Contains(err.Error(), key) {
			t.Errorf("%s %s: the error shows the cluster key: %v", tt.method, tt.path, err)
		}
	}
}

func TestQuery(t *testing.T) {
	for name, tt := range map[string]struct{ path, want string }{
		"across namespaces":   {"/api/v1/pods", "labelSelector=tenancy.x-k8s.io/converted=" + key},
		"with a selector":     {"/api/v1/pods?labelSelector=a+in+(b,c)", "labelSelector=a in (b,c),tenancy.x-k8s.io/converted=" + key},
		"two selectors":       {"/api/v1/pods?labelSelector=a&labelSelector=b", "labelSelector=a,tenancy.x-k8s.io/converted=" + key},
		"in a namespace":      {"/api/v1/namespaces/shop/pods?limit=5&pretty=1&unknown=2", "limit=5"},
		"by namespace":        {"/api/v1/pods?fieldSelector=metadata.namespace%3Dshop", "fieldSelector=metadata.namespace=" + key + "-shop&labelSelector=tenancy.x-k8s.io/converted=" + key},
		"events of an object": {"/api/v1/namespaces/shop/events?fieldSelector=involvedObject.namespace%3Dshop,involvedObject.name%3Dweb", "fieldSelector=involvedObject.name=web,involvedObject.namespace=" + key + "-shop"},
		"a Namespace":         {"/api/v1/namespaces?fieldSelector=metadata.name%3Dshop", "fieldSelector=metadata.name=" + key + "-shop&labelSelector=tenancy.x-k8s.io/converted=" + key},
		"Namespaces by label": {"/api/v1/namespaces?labelSelector=kubernetes.io/metadata.name%3Dshop,pod-security.kubernetes.io/warn", "labelSelector=kubernetes.io/metadata.name=" + key + "-shop,labels.tenancy.x-k8s.io/pod-security.kubernetes.io_warn,tenancy.x-k8s.io/converted=" + key},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := callOf(t, http.MethodGet, tt.path)
			if err != nil {
				t.Fatal(err)
			}
			asked, _ := url.Parse(tt.path)
			query, err := c.query(asked.Query())
			if err != nil {
				t.Fatal(err)
			}
			got, _ := url.QueryUnescape(query.Encode())
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRefusedQueries(t *testing.T) {
	for _, query := range []string{
		"labelSelector=tenancy.x-k8s.io/converted", "labelSelector=!tenancy.x-k8s.io/converted", "labelSelector=a,tenancy.x-k8s.io/vcname%3Db",
		"labelSelector=labels.tenancy.x-k8s.io/a", "labelSelector=%3D%3D", "fieldSelector=metadata.namespace%3Da/b", "fieldSelector=a",
	} {
		c, err := callOf(t, http.MethodGet, "/api/v1/pods?"+query)
		if err != nil {
			t.Fatal(err)
		}
		asked, _ := url.ParseQuery(query)
		if got, err := c.query(asked); err == nil {
			t.Errorf("%s becomes %s", query, got.Encode())
		}
	}
}

func TestAccept(t *testing.T) {
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for asked, want := range map[string]string{
		"":                                    "application/json",
		"application/vnd.kubernetes.protobuf": "application/json",
		table + ",application/json":           table + ",application/json",
		"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io, " + table: table + ",application/json",
	} {
		if got := accept([]string{asked}); got != want {
			t.Errorf("accept(%q) = %q, want %q", asked, got, want)
		}
	}
}

// swap changes the case of the letters in a text.
func swap(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, text)
}

func TestTokens(t *testing.T) {
	s, err := NewSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	sealed := s.seal("the key of an object", "red\x00pods")
	if opened, err := s.open(sealed, "red\x00pods"); err != nil || opened != "the key of an object" {
		t.Errorf("open() = %q, %v", opened, err)
	}
	if again := s.seal("the key of an object", "red\x00pods"); again == sealed {
		t.Error("a token is sealed to the same text twice")
	}
	other, _ := NewSealer([]byte(strings.Repeat("k", 32)))
	for name, open := range map[string]func() (string, error){
		"of another list": func() (string, error) { return s.open(sealed, "blue\x00pods") },
		"that was edited": func() (string, error) { return s.open(swap(sealed), "red\x00pods") },
		"that was cut":    func() (string, error) { return s.open(sealed[:8], "red\x00pods") },
		"in plain text":   func() (string, error) { return s.open("!", "red\x00pods") },
		"by another key":  func() (string, error) { return other.open(sealed, "red\x00pods") },
	} {
		if opened, err := open(); err == nil {
			t.Errorf("a token %s is opened: %q", name, opened)
		}
	}
}

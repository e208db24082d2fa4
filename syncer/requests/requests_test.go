package requests

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestClassify(t *testing.T) {
	for name, tc := range map[string]struct{ method, path, verb, resource string }{
		"create in a namespace":  {"POST", "/api/v1/namespaces/shop/pods", "create", "pods"},
		"get one":                {"GET", "/api/v1/namespaces/shop/pods/web", "get", "pods"},
		"list a namespace":       {"GET", "/api/v1/namespaces/shop/pods", "list", "pods"},
		"list all":               {"GET", "/api/v1/pods", "list", "pods"},
		"watch":                  {"GET", "/api/v1/pods?watch=true", "watch", "pods"},
		"status of one":          {"PATCH", "/api/v1/namespaces/shop/pods/web/status", "patch", "pods/status"},
		"binding":                {"POST", "/api/v1/namespaces/shop/pods/web/binding", "create", "pods/binding"},
		"a namespace":            {"GET", "/api/v1/namespaces/shop", "get", "namespaces"},
		"create a namespace":     {"POST", "/api/v1/namespaces", "create", "namespaces"},
		"a node's status":        {"PATCH", "/api/v1/nodes/n/status", "patch", "nodes/status"},
		"a group":                {"PUT", "/apis/tenancy.x-k8s.io/v1alpha1/namespaces/a/virtualclusters/b", "update", "virtualclusters"},
		"delete one":             {"DELETE", "/api/v1/namespaces/shop/pods/web", "delete", "pods"},
		"delete all":             {"DELETE", "/api/v1/namespaces/shop/pods", "deletecollection", "pods"},
		"discovery":              {"GET", "/apis", "get", "none"},
		"version":                {"GET", "/version", "get", "none"},
		"the groups of a group":  {"GET", "/apis/apps/v1", "get", "none"},
		"the resources of v1":    {"GET", "/api/v1", "get", "none"},
		"a health check":         {"GET", "/readyz", "get", "none"},
		"a trailing slash":       {"GET", "/api/v1/pods/", "list", "pods"},
		"namespaced, cluster up": {"GET", "/apis/apps/v1/deployments", "list", "deployments"},
	} {
		t.Run(name, func(t *testing.T) {
			verb, resource := classify(httptest.NewRequest(tc.method, tc.path, nil))
			if verb != tc.verb || resource != tc.resource {
				t.Errorf("got %s %s, want %s %s", verb, resource, tc.verb, tc.resource)
			}
		})
	}
}

func TestWrapCounts(t *testing.T) {
	registry := prometheus.NewRegistry()
	c, err := NewCounter(registry)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the connection broke")
	for _, r := range []struct {
		side string
		code int
		err  error
	}{{Super, http.StatusOK, nil}, {Super, http.StatusOK, nil}, {Super, http.StatusForbidden, nil}, {Tenant, http.StatusOK, nil}, {Tenant, 0, broken}} {
		answers := RoundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: r.code}, r.err })
		answer, err := c.Wrap(r.side)(answers).RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil))
		if !errors.Is(err, r.err) || answer.StatusCode != r.code {
			t.Errorf("the answer became %d, %v; want %d, %v", answer.StatusCode, err, r.code, r.err)
		}
	}
	want := `
# HELP vc_syncer_requests_total Requests sent to apiservers, by side (super or tenant), verb, resource, and status code of the response, or none.
# TYPE vc_syncer_requests_total counter
vc_syncer_requests_total{code="200",resource="pods",side="super",verb="list"} 2
vc_syncer_requests_total{code="403",resource="pods",side="super",verb="list"} 1
vc_syncer_requests_total{code="200",resource="pods",side="tenant",verb="list"} 1
vc_syncer_requests_total{code="none",resource="pods",side="tenant",verb="list"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestWrapCountsOpenWatches checks that a watch counts until it is closed, and
// other answers do not count.
func TestWrapCountsOpenWatches(t *testing.T) {
	c, err := NewCounter(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	sends := c.Wrap(Tenant)(RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	open := func(want float64) {
		t.Helper()
		if got := testutil.ToFloat64(c.watches.WithLabelValues(Tenant)); got != want {
			t.Errorf("%v watches are open, want %v", got, want)
		}
	}
	var answers []*http.Response
	for _, query := range []string{"?watch=true", "?watch=1", ""} {
		answer, err := sends.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/pods"+query, nil))
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	open(2)
	answers[0].Body.Close()
	answers[0].Body.Close()
	answers[2].Body.Close()
	open(1)
}

package resolve

import (
	"crypto/tls"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const domain = "gw.example.com"

func request(t *testing.T, target string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	parsed, err := url.ParseRequestURI(target)
	if err != nil {
		t.Skip(err)
	}
	r.URL, r.RequestURI, r.Host = parsed, target, domain
	return r
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		target string
		host   string
		sni    string
		header http.Header
		want   Asked
		code   int
	}{
		"short path":                       {target: "/api/v1/pods", want: Asked{Path: "/api/v1/pods"}},
		"root":                             {target: "/", want: Asked{Path: "/"}},
		"prefix":                           {target: "/tenants/red/api/v1/pods?watch=1", want: Asked{Tenant: "red", Prefix: "/tenants/red", Path: "/api/v1/pods", Query: "watch=1"}},
		"prefix alone":                     {target: "/tenants/red", want: Asked{Tenant: "red", Prefix: "/tenants/red", Path: "/"}},
		"prefix with a slash":              {target: "/tenants/red/", want: Asked{Tenant: "red", Prefix: "/tenants/red", Path: "/"}},
		"prefix without a name":            {target: "/tenants/", code: 400},
		"prefix with nothing":              {target: "/tenants", code: 400},
		"prefix with a name in capitals":   {target: "/tenants/Red/api", code: 400},
		"prefix of another word":           {target: "/tenantsx/red/api", want: Asked{Path: "/tenantsx/red/api"}},
		"prefix, encoded":                  {target: "/%74enants/red/api", code: 400},
		"prefix, the name encoded":         {target: "/tenants/r%65d/api", code: 400},
		"prefix, a slash encoded":          {target: "/tenants/red%2Fapi", code: 400},
		"prefix, left by dots":             {target: "/tenants/red/../blue/api", code: 400},
		"prefix, left by encoded dots":     {target: "/tenants/red/%2e%2e/blue/api", code: 400},
		"prefix, doubled slash in front":   {target: "//tenants/red/api", code: 400},
		"prefix, doubled slash in it":      {target: "/tenants//red/api", code: 400},
		"prefix, doubled slash behind":     {target: "/tenants/red//api", code: 400},
		"prefix, twice":                    {target: "/tenants/red/tenants/blue/api", want: Asked{Tenant: "red", Prefix: "/tenants/red", Path: "/tenants/blue/api"}},
		"full path, core":                  {target: "/api/v1/tenants/red/namespaces/default/pods/p", want: Asked{Tenant: "red", Path: "/api/v1/namespaces/default/pods/p"}},
		"full path, cluster-scoped":        {target: "/api/v1/tenants/red/persistentvolumes/pv1", want: Asked{Tenant: "red", Path: "/api/v1/persistentvolumes/pv1"}},
		"full path, a list":                {target: "/api/v1/tenants/red/pods", want: Asked{Tenant: "red", Path: "/api/v1/pods"}},
		"full path, group":                 {target: "/apis/apps/v1/tenants/red/deployments", want: Asked{Tenant: "red", Path: "/apis/apps/v1/deployments"}},
		"full path, system":                {target: "/api/v1/tenants/system/nodes", want: Asked{Tenant: "system", Path: "/api/v1/nodes"}},
		"full path, encoded":               {target: "/api/v1/%74enants/red/pods", code: 400},
		"full path, a bad name":            {target: "/api/v1/tenants/red%2f/pods", code: 400},
		"full path, doubled slash":         {target: "/api/v1/tenants//red/pods", code: 400},
		"a list of tenants":                {target: "/apis/example.com/v1/tenants", want: Asked{Path: "/apis/example.com/v1/tenants"}},
		"a tenant":                         {target: "/apis/example.com/v1/tenants/x", want: Asked{Path: "/apis/example.com/v1/tenants/x"}},
		"a tenant with a slash":            {target: "/apis/example.com/v1/tenants/x/", want: Asked{Path: "/apis/example.com/v1/tenants/x/"}},
		"the status of a tenant":           {target: "/apis/example.com/v1/tenants/x/status", want: Asked{Path: "/apis/example.com/v1/tenants/x/status"}},
		"the scale of a tenant":            {target: "/apis/example.com/v1/tenants/x/scale", want: Asked{Path: "/apis/example.com/v1/tenants/x/scale"}},
		"tenants in a namespace":           {target: "/apis/example.com/v1/namespaces/a/tenants/x/status", want: Asked{Path: "/apis/example.com/v1/namespaces/a/tenants/x/status"}},
		"tenants as a resource of one":     {target: "/apis/e.com/v1/tenants/red/tenants/x/status", want: Asked{Tenant: "red", Path: "/apis/e.com/v1/tenants/x/status"}},
		"path twice, the same":             {target: "/tenants/red/api/v1/tenants/red/pods", want: Asked{Tenant: "red", Prefix: "/tenants/red", Path: "/api/v1/pods"}},
		"path twice, two tenants":          {target: "/tenants/red/api/v1/tenants/blue/pods", code: 400},
		"query":                            {target: "/api/v1/pods?limit=1&project=red&watch=1", want: Asked{Tenant: "red", Path: "/api/v1/pods", Query: "limit=1&watch=1"}},
		"query, encoded":                   {target: "/api/v1/pods?%70roject=red", want: Asked{Tenant: "red", Path: "/api/v1/pods"}},
		"query, twice":                     {target: "/api/v1/pods?project=red&project=red", code: 400},
		"query, empty":                     {target: "/api/v1/pods?project=", code: 400},
		"query, no name":                   {target: "/api/v1/pods?project=a/b", code: 400},
		"query, another parameter":         {target: "/api/v1/pods?projects=a", want: Asked{Path: "/api/v1/pods", Query: "projects=a"}},
		"query and prefix agree":           {target: "/tenants/red/api?project=red", want: Asked{Tenant: "red", Prefix: "/tenants/red", Path: "/api"}},
		"query and prefix disagree":        {target: "/tenants/red/api?project=blue", code: 400},
		"query of a proxied server":        {target: "/tenants/red/api/v1/namespaces/a/services/s/proxy/x?project=blue", want: Asked{Tenant: "red", Prefix: "/tenants/red", Path: "/api/v1/namespaces/a/services/s/proxy/x", Query: "project=blue"}},
		"path of a proxied server":         {target: "/api/v1/nodes/n/proxy/a//b/../%2Fc", want: Asked{Path: "/api/v1/nodes/n/proxy/a//b/../%2Fc"}},
		"control characters, proxied":      {target: "/api/v1/nodes/n/proxy/%00", code: 400},
		"a resource called proxy":          {target: "/api/v1/proxy/../x", code: 400},
		"header":                           {target: "/api", header: http.Header{"X-Kubernetes-Project": {"red"}}, want: Asked{Tenant: "red", Path: "/api"}},
		"header, spelled with underscores": {target: "/api", header: http.Header{"X_kubernetes_project": {"red"}}, want: Asked{Tenant: "red", Path: "/api"}},
		"header, twice":                    {target: "/api", header: http.Header{"X-Kubernetes-Project": {"red", "red"}}, code: 400},
		"header, in both spellings":        {target: "/api", header: http.Header{"X-Kubernetes-Project": {"red"}, "X_kubernetes_project": {"red"}}, code: 400},
		"header and prefix disagree":       {target: "/tenants/red/api", header: http.Header{"X-Kubernetes-Project": {"blue"}}, code: 400},
		"host":                             {target: "/api", host: "red." + domain, want: Asked{Tenant: "red", Path: "/api"}},
		"host with port, in capitals":      {target: "/api", host: "RED." + domain + ":443", want: Asked{Tenant: "red", Path: "/api"}},
		"host and prefix disagree":         {target: "/tenants/blue/api", host: "red." + domain, code: 400},
		"host with two labels":             {target: "/api", host: "a.red." + domain, code: 400},
		"host and server name":             {target: "/api", host: "red." + domain, sni: "red." + domain, want: Asked{Tenant: "red", Path: "/api"}},
		"coalesced: two tenants":           {target: "/api", host: "blue." + domain, sni: "red." + domain, code: 421},
		"coalesced: from the gateway":      {target: "/api", host: "blue." + domain, sni: domain, code: 421},
		"coalesced: to the gateway":        {target: "/api", host: domain, sni: "red." + domain, code: 421},
		"server name alone":                {target: "/api", host: "10.0.0.1:443", sni: "red." + domain, want: Asked{Tenant: "red", Path: "/api"}},
		"server name of the gateway":       {target: "/api", host: "10.0.0.1", sni: domain, want: Asked{Path: "/api"}},
		"NUL":                              {target: "/api/v1/namespaces/a%00b", code: 400},
		"no path":                          {target: "https://gw.example.com", code: 400},
		"a path without a slash":           {target: "*", code: 400},
		"NUL in the prefix":                {target: "/tenants/a%00b/api", code: 400},
		"NUL in the query":                 {target: "/api?project=a%00b", code: 400},
		"NUL in the header":                {target: "/api", header: http.Header{"X-Kubernetes-Project": {"a\x00b"}}, code: 400},
		"not UTF-8, in the prefix":         {target: "/tenants/%ff/api", code: 400},
		"not UTF-8, in the query":          {target: "/api?project=%ff", code: 400},
		"not UTF-8, in the host":           {target: "/api", host: "\xff." + domain, code: 400},
		"not UTF-8":                        {target: "/api/v1/namespaces/%ff", code: 400},
		"a colon, encoded":                 {target: "/apis/r/v1/clusterroles/system%3Anode", want: Asked{Path: "/apis/r/v1/clusterroles/system%3Anode"}},
		"a percent sign, encoded twice":    {target: "/tenants/red/%252e%252e/x", code: 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := request(t, tt.target)
			if tt.host != "" {
				r.Host = tt.host
			}
			if tt.sni != "" {
				r.TLS = &tls.ConnectionState{ServerName: tt.sni}
			}
			maps.Copy(r.Header, tt.header)
			got, refusal := Parse(r, domain)
			if code(refusal) != tt.code {
				t.Fatalf("got %v, want code %d", refusal, tt.code)
			}
			if refusal != nil {
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for key := range tt.header {
				if _, ok := r.Header[key]; ok {
					t.Errorf("header %s is forwarded", key)
				}
			}
		})
	}
}

func code(refusal *Refusal) int {
	if refusal == nil {
		return 0
	}
	return refusal.Code
}

// FuzzParse: a path that is accepted leads to the tenant that it names and to no
// other, whichever program reads it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"/tenants/red/api/v1/pods", "/tenants/red/../blue/api", "/api/v1/tenants/red/pods", "/tenants/red%2f..%2fblue/api",
		"/apis/g/v/tenants/red/tenants/blue/status", "/api/v1/nodes/n/proxy/../../tenants/blue", "//tenants/red", "/tenants/red/%252e%252e/blue",
	} {
		f.Add(seed, "")
		f.Add(seed, "project=red&x=1")
	}
	f.Fuzz(func(t *testing.T, path, query string) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?# ") || strings.ContainsAny(query, "# ") {
			t.Skip()
		}
		r := request(t, path+"?"+query)
		asked, refusal := Parse(r, domain)
		if refusal != nil {
			return
		}
		server, _ := url.Parse("https://apiserver/clusters/one")
		target, err := asked.URL(server)
		if err != nil {
			t.Fatalf("the URL of %+v: %v", asked, err)
		}
		if got := target.EscapedPath(); got != "/clusters/one"+asked.Path {
			t.Errorf("%q is forwarded as %q", asked.Path, got)
		}
		if target.Host != server.Host {
			t.Errorf("%q leads to the host %q", path, target.Host)
		}
		again := request(t, asked.Path+"?"+asked.Query)
		inner, refusal := Parse(again, domain)
		if refusal == nil && inner.Path == asked.Path && inner.Tenant != "" && !asked.IsProxied() {
			t.Errorf("%+v still names a tenant", asked)
		}
		if asked.Tenant != "" && !strings.Contains(path+query, asked.Tenant) && !strings.Contains(query, "%") {
			t.Errorf("%q names no tenant %q", path, asked.Tenant)
		}
		if !asked.IsProxied() {
			for element := range strings.SplitSeq(target.Path, "/") {
				if element == ".." || element == "." {
					t.Errorf("%q is forwarded with dots as %q", path, target.Path)
				}
			}
		}
	})
}

func TestDirectLabel(t *testing.T) {
	for _, tt := range []struct{ serverName, domain, want string }{
		{"red.direct.gw.example.com", "gw.example.com", "red"},
		{"RED.Direct.gw.example.com.", "gw.example.com", "red"},
		{"red.gw.example.com", "gw.example.com", ""},
		{"direct.gw.example.com", "gw.example.com", ""},
		{"a.red.direct.gw.example.com", "gw.example.com", ""},
		{"red.direct.example.com", "gw.example.com", ""},
		{"red.direct.", "", ""},
		{"", "gw.example.com", ""},
	} {
		if got := DirectLabel(tt.serverName, tt.domain); got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
}

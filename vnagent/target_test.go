package vnagent

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const podUID = "0f1d5a3e-7b1c-4f2e-9a55-1c2d3e4f5a6b"

func TestParseTarget(t *testing.T) {
	cases := map[string]target{
		"/containerLogs/shop/web-0/app":                   {call: callLogs, namespace: "shop", pod: "web-0", container: "app"},
		"/exec/shop/web-0/app":                            {call: callExec, namespace: "shop", pod: "web-0", container: "app"},
		"/exec/shop/web-0/" + podUID + "/app":             {call: callExec, namespace: "shop", pod: "web-0", uid: podUID, container: "app"},
		"/attach/shop/web.0/debugger-x":                   {call: callAttach, namespace: "shop", pod: "web.0", container: "debugger-x"},
		"/attach/shop/web.0/" + podUID + "/app":           {call: callAttach, namespace: "shop", pod: "web.0", uid: podUID, container: "app"},
		"/portForward/shop/web-0":                         {call: callPortForward, namespace: "shop", pod: "web-0"},
		"/portForward/shop/web-0/" + podUID:               {call: callPortForward, namespace: "shop", pod: "web-0", uid: podUID},
		"/exec/shop/" + strings.Repeat("a", 253) + "/app": {call: callExec, namespace: "shop", pod: strings.Repeat("a", 253), container: "app"},
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			got, ok := parseTarget(parseURL(t, text))
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(target{})); !ok || diff != "" {
				t.Errorf("%v %s", ok, diff)
			}
		})
	}
}

func TestParseTargetRefuses(t *testing.T) {
	for _, text := range []string{
		"/", "", "//", "/exec", "/exec/", "/exec/shop", "/exec/shop/web", "/exec/shop/web/", "/exec//web/app", "/exec/shop//app",
		"/exec/shop/web/app/", "/exec/shop/web/uid/app/more", "//exec/shop/web/app", "exec/shop/web/app",
		"/containerLogs/shop/web", "/containerLogs/shop/web/" + podUID + "/app", "/portForward/shop", "/portForward/shop/web/uid/app",
		"/exec/shop/../app", "/exec/../kube-system/app", "/exec/shop/web/..", "/exec/./web/app", "/../exec/shop/web/app",
		"/exec/shop/web%2Fapp/x", "/exec/shop%2F..%2Fother/web/app", "/exec/shop/%2e%2e/app", "/exec/shop/we%62/app", "/%65xec/shop/web/app",
		"/exec/shop/web%00/app", "/exec/shop/web;x/app", "/exec/shop/web\\x/app", "/exec/shop/web app/x", "/exec/shop/web:80/app",
		"/exec/Shop/web/app", "/exec/shop/-web/app", "/exec/shop/web/App", "/exec/sh.op/web/app", "/exec/shop/web/a.pp", "/exec/shop/wéb/app",
		"/exec/" + strings.Repeat("a", 64) + "/web/app", "/exec/shop/" + strings.Repeat("a", 254) + "/app",
		"/run/shop/web/app", "/pods", "/runningpods/", "/metrics", "/stats/summary", "/logs/", "/configz", "/debug/pprof/", "/checkpoint/shop/web/app",
		"/execute/shop/web/app", "/EXEC/shop/web/app", "/containerlogs/shop/web/app",
	} {
		t.Run(text, func(t *testing.T) {
			// The path as a server gets it, which takes more than url.Parse
			// does.
			u, err := url.ParseRequestURI(text)
			if err != nil {
				u = &url.URL{Path: text}
			}
			if got, ok := parseTarget(u); ok {
				t.Errorf("it is taken for %+v", got)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	for _, tc := range []struct {
		call   call
		method string
		want   bool
	}{
		{callLogs, http.MethodGet, true}, {callLogs, http.MethodPost, false}, {callExec, http.MethodGet, true}, {callExec, http.MethodPost, true},
		{callPortForward, http.MethodDelete, false}, {callAttach, http.MethodPut, false},
	} {
		if got := tc.call.allows(tc.method); got != tc.want {
			t.Errorf("%s %s: %v", tc.method, tc.call, got)
		}
	}
}

// FuzzParseTarget tests that the URL built from any request is the one path of
// the one pod.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{
		"/exec/shop/web/app", "/exec/shop/web/uid/app", "/portForward/shop/web", "/containerLogs/shop/web/app",
		"/exec/../../x", "/exec/shop%2f..%2f..%2fsecrets/web/app", "/exec/shop/web%00/app", "/attach/a/b/c?x=/../y#z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.ParseRequestURI(text)
		if err != nil {
			return
		}
		got, ok := parseTarget(u)
		if !ok {
			return
		}
		built := strings.Join([]string{"/api/v1/namespaces", got.namespace, "pods", got.pod, got.call.subresource()}, "/")
		if path.Clean(built) != built || strings.Count(built, "/") != 7 || (&url.URL{Path: built}).EscapedPath() != built {
			t.Errorf("%q becomes %q", text, built)
		}
		for _, part := range []string{got.container, string(got.uid)} {
			if strings.ContainsAny(part, "/%?#&;\x00 ") || part == "." || part == ".." {
				t.Errorf("%q has the part %q", text, part)
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

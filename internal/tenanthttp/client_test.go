package tenanthttp

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// small are limits that a test exceeds quickly.
func small() Limits {
	return Limits{
		Object: 1000, Event: 500, Page: 2000, List: 3000, Pages: 3, Elements: 20, Error: 100, Time: time.Minute, ListTime: time.Minute,
	}
}

// serve starts an apiserver and returns a client of it.
func serve(t *testing.T, opts Options, handler http.HandlerFunc) (client *http.Client, url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client, err := NewClient(t.Context(), &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return client, server.URL
}

// get reads the whole answer to a request.
func get(t *testing.T, client *http.Client, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

func answers(code int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func object(size int) string {
	return `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}`
}

func frame(size int) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(size))) + strings.Repeat("x", size)
}

func TestAnswersAreBounded(t *testing.T) {
	const (
		pod   = "/api/v1/namespaces/a/pods/b"
		pods  = "/api/v1/pods"
		watch = "/api/v1/pods?watch=true"
	)
	tests := map[string]struct {
		path    string
		handler http.HandlerFunc
		limit   string // empty if the answer is taken
	}{
		"an object":             {pod, answers(200, jsonType, object(1000)), ""},
		"a large object":        {pod, answers(200, jsonType, object(1001)), "an object"},
		"an object in protobuf": {pod, answers(200, protobufType, strings.Repeat("x", 1001)), "an object"},
		"a page":                {pods, answers(200, jsonType, object(2000)), ""},
		"a large page":          {pods, answers(200, jsonType, object(2001)), "a page"},
		"events":                {watch, answers(200, jsonType, strings.Repeat(object(500), 9)), ""},
		"events in lines":       {watch, answers(200, jsonType, strings.Repeat(object(490)+"\n", 9)), ""},
		"a large event":         {watch, answers(200, jsonType, object(501)), "an event"},
		"a late large event":    {watch, answers(200, jsonType, object(400)+object(501)), "an event"},
		"only white space":      {watch, answers(200, jsonType, strings.Repeat("\n", 501)), "an event"},
		"a number without end":  {watch, answers(200, jsonType, strings.Repeat("1", 501)), "an event"},
		"braces in a text":      {watch, answers(200, jsonType, `{"a":"`+strings.Repeat(`}{\"`, 200)+`"}`), "an event"},
		"frames":                {watch, answers(200, protobufType+";stream=watch", strings.Repeat(frame(500), 9)), ""},
		"a large frame":         {watch, answers(200, protobufType+";stream=watch", frame(10)+frame(501)), "an event"},
		"an error":              {pod, answers(500, "text/plain", strings.Repeat("x", 100)), ""},
		"a large error":         {pod, answers(500, "text/plain", strings.Repeat("x", 101)), "an error"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			client, url := serve(t, Options{Limits: small()}, tt.handler)
			err := get(t, client, url+tt.path)
			exceeded, ok := errors.AsType[*ExceededError](err)
			switch {
			case tt.limit == "" && err != nil:
				t.Errorf("error %v", err)
			case tt.limit != "" && (!ok || !strings.Contains(exceeded.Limit, tt.limit)):
				t.Errorf("error %v, want one about the bytes of %s", err, tt.limit)
			}
		})
	}
}

// TestJSONOfTheUntrusted: text that would take a thousand times its bytes is
// refused before it is decoded.
func TestJSONOfTheUntrusted(t *testing.T) {
	limits := small()
	limits.Object, limits.Page = 1<<20, 1<<20
	tests := map[string]struct {
		path, body, limit string
	}{
		"an object":                {"/api/v1/pods/a", `{"a":[{},{},null]}`, ""},
		"elements in texts":        {"/api/v1/pods/a", `{"a":"` + strings.Repeat("{[n", 50) + `"}`, ""},
		"an object of nothing":     {"/api/v1/pods/a", `{"a":[` + strings.Repeat("{},", 20) + `{}]}`, "elements"},
		"an object of nulls":       {"/api/v1/pods/a", `{"a":[` + strings.Repeat("null,", 20) + `null]}`, "elements"},
		"as many items as allowed": {"/api/v1/pods?limit=500", `{"items":[` + strings.Repeat("{},", 99) + `{}]}`, ""},
		"more items than allowed":  {"/api/v1/pods?limit=500", `{"items":[` + strings.Repeat("{},", 100) + `{}]}`, "items"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			client, url := serve(t, Options{Limits: limits, Untrusted: true}, answers(200, jsonType, tt.body))
			err := get(t, client, url+tt.path)
			exceeded, ok := errors.AsType[*ExceededError](err)
			if tt.limit == "" && err != nil || tt.limit != "" && (!ok || !strings.Contains(exceeded.Limit, tt.limit)) {
				t.Errorf("error %v, want one about %q", err, tt.limit)
			}
		})
	}
}

func TestUntrustedAreAskedForJSONInPages(t *testing.T) {
	var accept, query string
	client, url := serve(t, Options{Limits: small(), Untrusted: true}, func(w http.ResponseWriter, r *http.Request) {
		accept, query = r.Header.Get("Accept"), r.URL.RawQuery
		answers(200, jsonType, "{}")(w, r)
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/pods?limit=500&resourceVersion=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", protobufType+",application/json;as=Table, application/json,application/cbor")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if accept != "application/json;as=Table, application/json" || query != "limit=100" {
		t.Errorf("asked for %q with %q", accept, query)
	}
	client, url = serve(t, Options{Limits: small(), Untrusted: true}, answers(200, protobufType, "k8s"))
	if err := get(t, client, url+"/api/v1/pods"); !strings.Contains(fmt.Sprint(err), "Content-Type") {
		t.Errorf("an answer in another format: %v", err)
	}
	client, url = serve(t, Options{Limits: small(), Untrusted: true}, answers(500, protobufType, "k8s"))
	if err := get(t, client, url+"/api/v1/pods"); !strings.Contains(fmt.Sprint(err), "Content-Type") {
		t.Errorf("an error in a format without limits: %v", err)
	}
	client, url = serve(t, Options{Limits: small(), Untrusted: true}, answers(502, "text/html", "<html>"))
	if err := get(t, client, url+"/api/v1/pods"); err != nil {
		t.Errorf("an error of a proxy: %v", err)
	}
}

// TestPagesAddUp tests that an endless list is rejected, because of its bytes
// or its pages, and that a list without a token is a new one.
func TestPagesAddUp(t *testing.T) {
	tests := map[string]struct {
		size  int
		limit string
	}{
		"large pages": {1500, "the bytes of a list"},
		"empty pages": {10, "the pages of a list"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var told error
			client, url := serve(t, Options{Limits: small(), Refused: func(err error) { told = err }},
				answers(200, jsonType, object(tt.size)))
			next := url + "/api/v1/pods?limit=5"
			var err error
			for range small().Pages + 1 {
				if err = get(t, client, next); err != nil {
					break
				}
				next = url + "/api/v1/pods?limit=5&continue=more"
			}
			if exceeded, ok := errors.AsType[*ExceededError](err); !ok || !strings.Contains(exceeded.Limit, tt.limit) || !errors.Is(told, exceeded) {
				t.Errorf("error %v, told %v, want one about %s", err, told, tt.limit)
			}
			if err := get(t, client, url+"/api/v1/pods?limit=5"); err != nil {
				t.Errorf("the next list: %v", err)
			}
		})
	}
}

func TestNothingCompressedIsTaken(t *testing.T) {
	client, url := serve(t, Options{Limits: small()}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("asked for %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = io.WriteString(packed, "{}")
		_ = packed.Close()
	})
	if err := get(t, client, url+"/version"); !strings.Contains(fmt.Sprint(err), "Content-Encoding") {
		t.Errorf("a compressed answer: %v", err)
	}
}

// TestRedirectsAreNotFollowed: neither to another server nor on the same one,
// with any status.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, code := range []int{300, 301, 302, 303, 304, 305, 307, 308} {
		visits := 0
		client, url := serve(t, Options{Limits: small()}, func(w http.ResponseWriter, _ *http.Request) {
			visits++
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
		})
		err := get(t, client, url+"/api/v1/pods")
		if redirect, ok := errors.AsType[*RedirectError](err); !ok || redirect.Code != code || visits != 1 {
			t.Errorf("status %d: %d requests, error %v", code, visits, err)
		}
	}
}

func TestHeadersAreBounded(t *testing.T) {
	client, url := serve(t, Options{Limits: small()}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Filler", strings.Repeat("x", 2*maxHeaders))
	})
	if err := get(t, client, url+"/version"); err == nil {
		t.Error("headers of any size are read")
	}
}

func TestRetryAfterIsBounded(t *testing.T) {
	for given, want := range map[string]string{"1": "1", "10": "10", "11": "", "99999999999999999999": "", "Fri, 31 Dec 9999 23:59:59 GMT": ""} {
		client, url := serve(t, Options{Limits: small()}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", given)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := answer.Header.Get("Retry-After"); got != want {
			t.Errorf("Retry-After %q becomes %q, want %q", given, got, want)
		}
	}
}

// TestTimeIsBounded: of an answer that drips too, while a watch may last.
func TestTimeIsBounded(t *testing.T) {
	limits := small()
	limits.Time, limits.ListTime = 100*time.Millisecond, 100*time.Millisecond
	client, url := serve(t, Options{Limits: limits}, func(w http.ResponseWriter, r *http.Request) {
		for range 20 {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		}
	})
	for path, bounded := range map[string]bool{"/api/v1/pods": true, "/version": true, "/api/v1/pods?watch=true": false} {
		if err := get(t, client, url+path); (err != nil) != bounded {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestClosedConnectionsLetGoOfTheTenant: a tenant that lives long does not
// collect what it closed.
func TestClosedConnectionsLetGoOfTheTenant(t *testing.T) {
	released := false
	ours, theirs := net.Pipe()
	defer theirs.Close()
	conn := &ownedConn{Conn: ours, release: func() bool { released = true; return true }}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if !released {
		t.Error("a closed connection keeps its claim on the context")
	}
}

func TestKindOf(t *testing.T) {
	tests := map[string]string{
		"GET /api/v1/pods":                             aList,
		"GET /api/v1/namespaces":                       aList,
		"GET /api/v1/namespaces/a":                     anObject,
		"GET /api/v1/namespaces/a/pods":                aList,
		"GET /api/v1/namespaces/a/pods/b":              anObject,
		"GET /api/v1/namespaces/a/pods?watch=true":     aWatch,
		"GET /apis/apps/v1/deployments":                aList,
		"GET /apis/apps/v1/namespaces/a/deployments/b": anObject,
		"GET /apis/apps/v1":                            anObject,
		"GET /apis":                                    anObject,
		"GET /version":                                 anObject,
		"GET /tenants/red/api/v1/pods":                 aList,
		"POST /api/v1/namespaces/a/pods":               anObject,
		"DELETE /api/v1/namespaces/a/pods/b":           anObject,
	}
	for request, want := range tests {
		method, url, _ := strings.Cut(request, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, url, nil)
		if got := kindOf(r); got != want {
			t.Errorf("%s is %s, want %s", request, got, want)
		}
	}
}

package inflight

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchOf is the path of a watch with a label selector, which begins now.
func watchOf(selector string) string {
	return "/api/v1/pods?watch=1&resourceVersion=7&labelSelector=" + url.QueryEscape(selector)
}

// terms is a selector with a number of requirements.
func terms(number int) string { return strings.Repeat("a,", number-1) + "a" }

func TestHeads(t *testing.T) {
	longest := "/api?" + strings.Repeat("a", longestURL-len("/api?"))
	for name, test := range map[string]struct {
		path    string
		headers http.Header
		want    int32
		why     string
	}{
		"the longest URL":                    {path: longest},
		"one byte longer":                    {path: longest + "a", want: http.StatusRequestURITooLong, why: "has 65537 bytes, and can have 65536"},
		"a long path":                        {path: "/" + strings.Repeat("a", longestURL), want: http.StatusRequestURITooLong, why: "the URL"},
		"a URL that is encoded":              {path: "/api?" + strings.Repeat("%61", longestURL/3), want: http.StatusRequestURITooLong, why: "the URL"},
		"the most terms":                     {path: watchOf(terms(mostTerms))},
		"one more":                           {path: watchOf(terms(mostTerms + 1)), want: http.StatusBadRequest, why: "have 1001 requirements and values, and can have 1000"},
		"values of one requirement":          {path: watchOf("a in (" + terms(mostTerms+1) + ")"), want: http.StatusBadRequest, why: "1001"},
		"a selector by fields":               {path: "/api?fieldSelector=" + terms(mostTerms+1), want: http.StatusBadRequest, why: "1001"},
		"two selectors":                      {path: watchOf(terms(mostTerms)) + "&fieldSelector=a", want: http.StatusBadRequest, why: "1001"},
		"the same one twice":                 {path: watchOf(terms(mostTerms)) + "&labelSelector=a", want: http.StatusBadRequest, why: "1001"},
		"a selector whose name is encoded":   {path: "/api?l%61belS%65lector=" + terms(mostTerms+1), want: http.StatusBadRequest, why: "1001"},
		"commas elsewhere":                   {path: "/api?command=" + terms(mostTerms+1)},
		"the longest header":                 {headers: http.Header{"A": {strings.Repeat("a", longestHeaders-fieldCost-1-len("example.com"))}}},
		"one byte more":                      {headers: http.Header{"A": {strings.Repeat("a", longestHeaders-fieldCost-len("example.com"))}}, want: http.StatusRequestHeaderFieldsTooLarge, why: "have 65537 bytes"},
		"many headers without text":          {headers: http.Header{"A": make([]string, longestHeaders/fieldCost)}, want: http.StatusRequestHeaderFieldsTooLarge, why: "the headers"},
		"a selector that cannot be decoded":  {path: "/api?labelSelector=%zz"},
		"a long host that the client claims": {headers: http.Header{"Host": {strings.Repeat("a", longestHeaders)}}, want: http.StatusRequestHeaderFieldsTooLarge, why: "the headers"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := newHost(math.MaxInt64).Add("a", Config{})
			served := false
			handler := filterOf(always(tenant)).Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true }))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
			if test.path != "" {
				at, err := url.Parse(test.path)
				if err != nil {
					t.Fatal(err)
				}
				r.URL, r.RequestURI = at, test.path
			}
			r.Header = test.headers
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			if served != (test.want == 0) {
				t.Fatalf("served: %t, with %d", served, answer.Code)
			}
			if test.want == 0 {
				return
			}
			var status metav1.Status
			if err := json.Unmarshal(answer.Body.Bytes(), &status); err != nil {
				t.Fatal(err)
			}
			if answer.Code != int(test.want) || status.Code != test.want || !strings.Contains(status.Message, test.why) {
				t.Errorf("got %d and %+v, want %d because %s", answer.Code, status, test.want, test.why)
			}
		})
	}
}

// TestHeadsInFlight: those of all requests together are limited, until these end.
func TestHeadsInFlight(t *testing.T) {
	for name, path := range map[string]string{
		"a watch":                        watchOf(terms(mostTerms)),
		"a watch that begins with all":   strings.Replace(watchOf(terms(mostTerms)), "resourceVersion=7", "sendInitialEvents=true", 1),
		"a log that is followed":         "/api/v1/namespaces/a/pods/b/log?" + strings.Repeat("a", longestURL/2),
		"a request that is not answered": "/api/v1/namespaces/a/pods/b?" + strings.Repeat("a", longestURL/2),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tenant := newHost(math.MaxInt64).Add("a", Config{})
				end, ended := context.WithCancel(t.Context())
				handler := filterOf(always(tenant)).Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
				send := func() *httptest.ResponseRecorder {
					answer := httptest.NewRecorder()
					handler.ServeHTTP(answer, httptest.NewRequestWithContext(end, http.MethodGet, path, http.NoBody))
					return answer
				}
				one := headOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)).counted()
				fit := int(headBudget / one)
				for range fit {
					go send() // ends with the context
				}
				time.Sleep(initialPatience)
				synctest.Wait()
				if used := tenant.Usage(); used.Bytes < one*int64(fit) {
					t.Errorf("%d requests have %d bytes, want %d", fit, used.Bytes, one*int64(fit))
				}
				began := time.Now()
				answer := send()
				if answer.Code != http.StatusTooManyRequests || !strings.Contains(answer.Body.String(), "shorten selectors") {
					t.Errorf("got %d: %s", answer.Code, answer.Body)
				}
				if waited := time.Since(began); waited > 0 {
					t.Errorf("waited %s with its head", waited)
				}
				ended()
				synctest.Wait()
				if used := tenant.Usage(); used.Bytes != 0 || used.Running != [kinds]int{} || tenant.heads != 0 {
					t.Errorf("left: %+v, and %d bytes of heads", used, tenant.heads)
				}
			})
		})
	}
}

// TestUsualHeadsDoNotCount: the number of requests has a limit.
func TestUsualHeadsDoNotCount(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
		watchOf("app.kubernetes.io/name=web,tier in (a,b,c)")+"&fieldSelector=metadata.name%3Da", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+strings.Repeat("a", 4<<10))
	if counted := headOf(r).counted(); counted > 0 {
		t.Errorf("counts %d bytes", counted)
	}
}

// TestLongHeadsDoNotWait for others, like requests with short ones.
func TestLongHeadsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := newHost(math.MaxInt64).Add("a", Config{Limits: Limits{Reads: 1}})
		take(t, tenant, demand{kind: Read})
		for head, want := range map[int64]time.Duration{0: patience, 1: 0} {
			began := time.Now()
			if _, err := tenant.acquire(t.Context(), demand{kind: Read, cost: head, head: head}); err == nil {
				t.Error("it has started")
			}
			if waited := time.Since(began); waited != want {
				t.Errorf("with %d bytes: waited %s, want %s", head, waited, want)
			}
		}
	})
}

// TestARefusalThatIsNotRead ends with its stream: a client of HTTP/2 can receive
// nothing, and keep its request in the server. The connection can be used again.
func TestARefusalThatIsNotRead(t *testing.T) {
	const requests = 3
	ended := make(chan struct{}, requests)
	handler := filterOf(always(newHost(math.MaxInt64).Add("a", Config{}))).Wrap(http.NotFoundHandler())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{
		RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, NextProtos: []string{"h2"}, ServerName: "example.com",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	for i := range requests {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		for _, field := range [][2]string{
			{":method", http.MethodGet}, {":scheme", "https"}, {":authority", "example.com"}, {":path", "/api?labelSelector=" + terms(mostTerms+1)},
		} {
			if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
		}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("the request has not ended")
		}
	}
	reset := map[uint32]bool{}
	for len(reset) < requests {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("of %d requests, %d have ended: %v", requests, len(reset), err)
		}
		if frame, ok := frame.(*http2.RSTStreamFrame); ok {
			reset[frame.StreamID] = true
		}
	}
}

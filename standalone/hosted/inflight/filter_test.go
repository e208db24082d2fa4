package inflight

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/util/flowcontrol"
)

type internalKey struct{}

type callKey struct{}

type platformKey struct{}

// filterOf returns a filter of a chain that finds its tenant in the context.
func filterOf(tenant func(context.Context) (*Tenant, error)) Filter {
	return Filter{
		Tenant: tenant,
		Resolver: &apirequest.RequestInfoFactory{
			APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
		},
		IsLongRunning: filters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString("log")),
		IsInternal:    func(ctx context.Context) bool { return ctx.Value(internalKey{}) != nil },
		IsPlatform:    func(r *http.Request) bool { return r.Context().Value(platformKey{}) != nil },
		CallsWebhook:  func(ctx context.Context) bool { return ctx.Value(callKey{}) != nil },
		Cached:        true,
	}
}

func always(tenant *Tenant) func(context.Context) (*Tenant, error) {
	return func(context.Context) (*Tenant, error) { return tenant, nil }
}

// exhaust uses all memory of a tenant.
func exhaust(t *testing.T, tenant *Tenant) {
	t.Helper()
	take(t, tenant, demand{cost: huge})
	for range (tenantBudget - largeBudget) / smallRequest {
		take(t, tenant, demand{cost: smallRequest})
	}
}

// TestRequestsWaitForMemory: only the requests of clients do, and not for longer
// than a client waits.
func TestRequestsWaitForMemory(t *testing.T) {
	for name, test := range map[string]struct {
		method, path   string
		internal, free bool
		calls          bool // a webhook
		want           int
		waited         time.Duration
	}{
		"a read while there is memory":   {path: "/api/v1/pods", free: true, want: http.StatusOK},
		"a list while there is none":     {path: "/api/v1/pods", want: http.StatusTooManyRequests, waited: patience},
		"a get while there is none":      {path: "/api/v1/namespaces/a/pods/b", want: http.StatusTooManyRequests, waited: patience},
		"a creation":                     {method: http.MethodPost, path: "/api/v1/namespaces/a/pods", want: http.StatusTooManyRequests, waited: patience},
		"discovery":                      {path: "/apis", want: http.StatusTooManyRequests, waited: patience},
		"a path that is none":            {path: "/api/v1//", want: http.StatusTooManyRequests, waited: patience},
		"a watch":                        {path: "/api/v1/pods?watch=true&resourceVersion=7", want: http.StatusOK},
		"a watch that begins with lists": {path: "/api/v1/pods?watch=true", want: http.StatusTooManyRequests, waited: patience},
		"a log that is followed":         {path: "/api/v1/namespaces/a/pods/b/log", want: http.StatusOK},
		"a controller":                   {path: "/api/v1/pods", internal: true, want: http.StatusOK},
		"a webhook": {
			method: http.MethodPost, path: "/apis/example.com/v1/reviews", internal: true, calls: true,
			want: http.StatusTooManyRequests, waited: patience,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tenant := newHost(math.MaxInt64).Add("a", Config{Stored: func() Stored { return Stored{Bytes: 1 << 20} }})
				if !test.free {
					exhaust(t, tenant)
				}
				ctx := t.Context()
				if test.internal {
					ctx = context.WithValue(ctx, internalKey{}, true)
				}
				if test.calls {
					ctx = context.WithValue(ctx, callKey{}, true)
				}
				served := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
				r := httptest.NewRequestWithContext(ctx, cmp.Or(test.method, http.MethodGet), test.path, http.NoBody)
				answer, begin := httptest.NewRecorder(), time.Now()
				filterOf(always(tenant)).Wrap(served).ServeHTTP(answer, r)
				if answer.Code != test.want || time.Since(begin) != test.waited {
					t.Errorf("got %d after %s, want %d after %s", answer.Code, time.Since(begin), test.want, test.waited)
				}
				if answer.Code != http.StatusOK && !strings.Contains(answer.Body.String(), "list in pages") {
					t.Errorf("the answer %s does not say what to do", answer.Body)
				}
			})
		})
	}
}

// TestThePlatform: its requests do not wait for the tenant's, nor those of the
// tenant for them, and large ones take their part of the process's memory.
func TestThePlatform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stored = 1 << 20
		host := newHost(math.MaxInt64)
		limits := Limits{Reads: 1, Writes: 1, Watches: 1}
		tenant := host.Add("a", Config{Limits: limits, Stored: func() Stored { return Stored{Bytes: stored, Largest: stored} }})
		var during func(*http.Request)
		handler := filterOf(always(tenant)).Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { during(r) }))
		send := func(ctx context.Context, path string, inside func(*http.Request)) int {
			during = inside
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
			return answer.Code
		}
		none := func(*http.Request) {}
		platform := context.WithValue(t.Context(), platformKey{}, true)
		for _, path := range []string{"/api/v1/pods?limit=9&continue=x", "/api/v1/pods?watch=1"} {
			before := host.held
			if code := send(platform, path, func(r *http.Request) {
				if got := tenant.Usage(); got.Running != [kinds]int{} || got.Bytes != 0 {
					t.Errorf("%s of the platform counts for the tenant: %+v", path, got)
				}
				if large := host.held > before; large != strings.Contains(path, "continue") {
					t.Errorf("%s: the process has %d bytes", path, host.held)
				}
				if code := send(t.Context(), r.URL.String(), none); code != http.StatusOK {
					t.Errorf("%s of the tenant beside the platform's: got %d", path, code)
				}
			}); code != http.StatusOK || host.held != before {
				t.Errorf("%s: got %d, and %d bytes are left", path, code, host.held-before)
			}
		}
		for kind := range Kind(kinds) {
			take(t, tenant, demand{kind: kind})
		}
		exhaust(t, host.Add("another", Config{}))
		host.capacity, tenant.shed = host.held, true
		for _, path := range []string{"/api/v1/pods?limit=9&continue=x", "/api/v1/pods?watch=1", "/api/v1/namespaces/a/pods/b"} {
			if code := send(platform, path, none); code != http.StatusOK {
				t.Errorf("%s of the platform when nothing is left: got %d", path, code)
			}
			if code := send(t.Context(), path, none); code != http.StatusTooManyRequests {
				t.Errorf("%s of the tenant: got %d", path, code)
			}
		}
	})
}

// TestCallsOfWebhooksDoNotWaitForWrites, which wait for them: also a controller's.
func TestCallsOfWebhooksDoNotWaitForWrites(t *testing.T) {
	tenant := newHost(math.MaxInt64).Add("a", Config{Limits: Limits{Writes: 1}})
	var handler http.Handler
	send := func(ctx context.Context, path string) int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, path, http.NoBody))
		return answer.Code
	}
	called := 0
	handler = filterOf(always(tenant)).Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if ctx := r.Context(); ctx.Value(callKey{}) == nil {
			ctx = context.WithValue(context.WithValue(ctx, internalKey{}, true), callKey{}, true)
			if code := send(ctx, "/apis/example.com/v1/reviews"); code != http.StatusOK {
				t.Errorf("got %d", code)
			}
			return
		}
		called++
		if got := tenant.Usage(); got.Running[WebhookCall] != 1 {
			t.Errorf("got %+v", got)
		}
	}))
	for _, ctx := range []context.Context{t.Context(), context.WithValue(t.Context(), internalKey{}, true)} {
		if code := send(ctx, "/api/v1/namespaces/a/pods"); code != http.StatusOK {
			t.Errorf("got %d", code)
		}
	}
	if got := tenant.Usage(); called != 2 || got.Running != [kinds]int{} || got.Bytes != 0 {
		t.Errorf("%d calls, and then %+v", called, got)
	}
}

// TestARejectionIsAStatus that clients of Kubernetes retry, whatever it is for.
func TestARejectionIsAStatus(t *testing.T) {
	advices := sets.New[string]()
	for _, reason := range append(Reasons(), "another") {
		answer := httptest.NewRecorder()
		respond(explain(rejection(reason)), answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods", http.NoBody))
		status := metav1.Status{}
		if err := json.Unmarshal(answer.Body.Bytes(), &status); err != nil {
			t.Fatal(err)
		}
		if status.Code != http.StatusTooManyRequests || status.Reason != metav1.StatusReasonTooManyRequests || answer.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: got %+v with the headers %v", reason, status, answer.Header())
		}
		advices.Insert(status.Message)
	}
	if advices.Len() != len(Reasons())+1 {
		t.Errorf("reasons have the same advice: %v", sets.List(advices))
	}
}

type tenantKey struct{}

// TestAChainOfManyTenants: the requests of a chain count for the tenants of
// their contexts, and a request without a tenant is an error.
func TestAChainOfManyTenants(t *testing.T) {
	host := newHost(math.MaxInt64)
	red, blue := host.Add("red", Config{Limits: Limits{Watches: 1}}), host.Add("blue", Config{Limits: Limits{Watches: 1}})
	filter := filterOf(func(ctx context.Context) (*Tenant, error) {
		if tenant, ok := ctx.Value(tenantKey{}).(*Tenant); ok {
			return tenant, nil
		}
		return nil, errors.New("the request has no tenant")
	})
	var nested func(context.Context) int
	handler := filter.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next, ok := r.Context().Value(internalKey{}).(context.Context); ok {
			w.WriteHeader(nested(next))
		}
	}))
	nested = func(ctx context.Context) int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?watch=1&resourceVersion=7", http.NoBody))
		return answer.Code
	}
	of := func(tenant *Tenant) context.Context { return context.WithValue(t.Context(), tenantKey{}, tenant) }
	filterless := take(t, red, demand{kind: Watch})
	for name, test := range map[string]struct {
		ctx  context.Context
		want int
	}{
		"at its limit": {of(red), http.StatusTooManyRequests},
		"below it":     {of(blue), http.StatusOK},
		"none":         {t.Context(), http.StatusInternalServerError},
	} {
		if got := nested(test.ctx); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
	filterless.release()
	if got := nested(of(red)); got != http.StatusOK {
		t.Errorf("when the watch has ended: got %d", got)
	}
}

// TestTheBeginningOfAWatch of a watch cache counts until it has sent what exists,
// or for half a minute; its end releases the rest.
func TestTheBeginningOfAWatch(t *testing.T) {
	for name, signals := range map[string]bool{"that has sent it": true, "that is slow": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tenant := newHost(math.MaxInt64).Add("a", Config{Stored: func() Stored { return Stored{Bytes: 1 << 30} }})
				handler := filterOf(always(tenant)).Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if tenant.Usage().Bytes != largeBudget {
						t.Errorf("its list counts %d bytes", tenant.Usage().Bytes)
					}
					if signals {
						flowcontrol.WatchInitialized(r.Context())
						flowcontrol.WatchInitialized(r.Context())
					} else {
						time.Sleep(initialPatience)
						synctest.Wait()
					}
					if got := tenant.Usage(); got.Bytes != 0 || got.Running[Watch] != 1 {
						t.Errorf("later it has %+v", got)
					}
				}))
				handler.ServeHTTP(httptest.NewRecorder(),
					httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods?watch=1&sendInitialEvents=true", http.NoBody))
				if got := tenant.Usage(); got.Bytes != 0 || got.Running[Watch] != 0 {
					t.Errorf("after its end it has %+v", got)
				}
			})
		})
	}
}

// TestAPanicReleases: upstream recovers panics of handlers further out.
func TestAPanicReleases(t *testing.T) {
	tenant := newHost(math.MaxInt64).Add("a", Config{})
	handler := filterOf(always(tenant)).Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	func() {
		defer func() { _ = recover() }()
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods", http.NoBody))
	}()
	if got := tenant.Usage(); got.Bytes != 0 || got.Running[Read] != 0 {
		t.Errorf("got %+v", got)
	}
}

// deadlines records the write deadlines of a response.
type deadlines struct {
	*httptest.ResponseRecorder

	set []time.Time
}

// SetWriteDeadline is what http.ResponseController calls.
func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// TestALargeResponseThatIsNotRead ends, and the connection can be used again.
func TestALargeResponseThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := newHost(math.MaxInt64).Add("a", Config{Stored: func() Stored { return Stored{Bytes: 1 << 30} }})
		handler := filterOf(always(tenant)).Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for path, want := range map[string]int{"/api/v1/pods": 2, "/api/v1/namespaces/a/pods/b": 0, "/api/v1/pods?watch=1": 0} {
			answer := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
			if len(answer.set) != want {
				t.Fatalf("%s: %d deadlines, want %d", path, len(answer.set), want)
			}
			if want > 0 && (answer.set[0] != time.Now().Add(readPatience) || !answer.set[1].IsZero()) {
				t.Errorf("got %v", answer.set)
			}
		}
	})
}

// TestDeadlinesWork on a real connection, with HTTP/1.1 and HTTP/2.
func TestDeadlinesWork(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
					t.Error(err)
				}
				var err error
				for block := make([]byte, 1<<20); err == nil; {
					_, err = w.Write(block)
				}
				ended <- err
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			select {
			case err := <-ended:
				if timeout, ok := errors.AsType[net.Error](err); ok && !timeout.Timeout() {
					t.Errorf("got %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("the response does not end")
			}
			_, _ = io.Copy(io.Discard, answer.Body)
		})
	}
}

package hosted

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
)

func TestCost(t *testing.T) {
	const used = 10 << 20
	for name, test := range map[string]struct {
		verb, accept, body string
		chunked            bool
		want               int64
	}{
		"get":                         {verb: "get", want: baseCost},
		"create":                      {verb: "create", body: "1234", want: baseCost + 4*bodyFactor},
		"create of an unknown length": {verb: "create", body: "1234", chunked: true, want: baseCost + longestBody*bodyFactor},
		"list":                        {verb: "list", want: baseCost + used},
		"list as a table":             {verb: "list", accept: "application/json;as=Table;v=v1;g=meta.k8s.io", want: baseCost + used*convertFactor},
		"list as YAML":                {verb: "list", accept: "application/yaml", want: baseCost + used*convertFactor},
		"deletion of a collection":    {verb: "deletecollection", want: baseCost + used},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a", strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if test.chunked {
				r.ContentLength = -1
			}
			r.Header.Set("Accept", test.accept)
			if got := cost(r, &apirequest.RequestInfo{IsResourceRequest: true, Verb: test.verb}, used); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := semaphore.NewWeighted(planeBudget)
		plane := func() *budget {
			return &budget{plane: semaphore.NewWeighted(planeBudget), host: host, hostSize: planeBudget}
		}
		greedy, other := plane(), plane()
		release, err := greedy.acquire(t.Context(), 2*planeBudget)
		if err != nil {
			t.Fatalf("a request that takes more than there is: %v", err)
		}
		if _, err := greedy.acquire(t.Context(), 1); err == nil {
			t.Error("a request goes beyond the budget of its control plane")
		}
		if _, err := other.acquire(t.Context(), smallRequest); err != nil {
			t.Errorf("a small request of another control plane: %v", err)
		}
		if _, err := other.acquire(t.Context(), smallRequest+1); err == nil {
			t.Error("a large request goes beyond the budget of the host")
		}
		release()
		ended, end := context.WithCancel(t.Context())
		defer end()
		if _, err := greedy.acquire(ended, planeBudget); err != nil {
			t.Errorf("the budget is not released: %v", err)
		}
	})
}

// TestRequestsWaitForMemory: only the requests of clients do, and not for longer
// than a client waits.
func TestRequestsWaitForMemory(t *testing.T) {
	const token = "own"
	for name, test := range map[string]struct {
		method, path, token string
		free                bool
		want                int
		waited              time.Duration
	}{
		"a read while there is memory": {path: "/api/v1/pods", free: true, want: http.StatusOK},
		"a list while there is none":   {path: "/api/v1/pods", want: http.StatusTooManyRequests, waited: budgetPatience},
		"a get while there is none":    {path: "/api/v1/namespaces/a/pods/b", want: http.StatusTooManyRequests, waited: budgetPatience},
		"a creation":                   {method: http.MethodPost, path: "/api/v1/namespaces/a/pods", want: http.StatusTooManyRequests, waited: budgetPatience},
		"discovery":                    {path: "/apis", want: http.StatusTooManyRequests, waited: budgetPatience},
		"a path that is none":          {path: "/api/v1//", want: http.StatusTooManyRequests, waited: budgetPatience},
		"a watch":                      {path: "/api/v1/pods?watch=true", want: http.StatusOK},
		"a log that is followed":       {path: "/api/v1/namespaces/a/pods/b/log", want: http.StatusOK},
		"a controller":                 {path: "/api/v1/pods", token: token, want: http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &budget{
					plane: semaphore.NewWeighted(planeBudget), host: semaphore.NewWeighted(planeBudget), hostSize: planeBudget,
					used: func() int64 { return 1 << 20 },
				}
				if !test.free {
					release, err := b.acquire(t.Context(), planeBudget)
					if err != nil {
						t.Fatal(err)
					}
					defer release()
				}
				config := &genericapiserver.Config{
					RequestInfoResolver: &apirequest.RequestInfoFactory{
						APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
					},
					LongRunningFunc: filters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString("log")),
				}
				served := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
				r := httptest.NewRequestWithContext(t.Context(), cmp.Or(test.method, http.MethodGet), test.path, http.NoBody)
				r.Header.Set("Authorization", "Bearer "+test.token)
				answer, begin := httptest.NewRecorder(), time.Now()
				withOrigin(b.limitRequests(served, config), token).ServeHTTP(answer, r)
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

func TestHostBudget(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for limit, want := range map[int64]int64{math.MaxInt64: leastHostBudget, 1 << 30: leastHostBudget, 100 << 30: 25 << 30} {
		debug.SetMemoryLimit(limit)
		if got := hostBudget(); got != want {
			t.Errorf("with a limit of %d the budget is %d, want %d", limit, got, want)
		}
	}
}

package hosted

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/semaphore"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
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

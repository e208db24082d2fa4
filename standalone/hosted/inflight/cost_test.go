package inflight

import (
	"net/http"
	"strings"
	"testing"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestCost(t *testing.T) {
	const used, largest = 10 << 20, 1 << 10
	for name, test := range map[string]struct {
		verb, accept, agent, query, body string
		chunked, uncached                bool
		largest                          int64
		want                             int64
	}{
		"get":                         {verb: "get", want: baseCost},
		"get where objects are large": {verb: "get", largest: largest, want: baseCost + largest*objectFactor},
		"create":                      {verb: "create", body: "1234", want: baseCost + 4*bodyFactor},
		"create of an unknown length": {verb: "create", body: "1234", chunked: true, want: baseCost + longestBody*bodyFactor},
		"list":                        {verb: "list", want: baseCost + used},
		"list as a table":             {verb: "list", accept: "application/json;as=Table;v=v1;g=meta.k8s.io", want: baseCost + used*convertFactor},
		"list as YAML":                {verb: "list", accept: "application/yaml", want: baseCost + used*convertFactor},
		"list with indentation":       {verb: "list", query: "pretty=true", want: baseCost + used*convertFactor},
		"list accepted so":            {verb: "list", accept: "application/json;pretty=1", want: baseCost + used*convertFactor},
		"list by curl":                {verb: "list", agent: "curl/8.5.0", want: baseCost + used*convertFactor},
		"list of an exact revision":   {verb: "list", query: "resourceVersion=5&resourceVersionMatch=Exact", want: baseCost + used*convertFactor},
		"list without a cache":        {verb: "list", uncached: true, want: baseCost + used*convertFactor},
		"page":                        {verb: "list", query: "limit=10", largest: largest, want: baseCost + largest*objectFactor + 10*largest},
		"page that continues":         {verb: "list", query: "limit=10&continue=x", largest: largest, want: baseCost + largest*objectFactor + 10*largest*convertFactor},
		"page of everything":          {verb: "list", query: "limit=2000000000", largest: largest, want: baseCost + largest*objectFactor + used},
		"page of a wrong size":        {verb: "list", query: "limit=-1", largest: largest, want: baseCost + largest*objectFactor + used},
		"deletion of a collection":    {verb: "deletecollection", want: baseCost + used},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a?"+test.query, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if test.chunked {
				r.ContentLength = -1
			}
			r.Header.Set("Accept", test.accept)
			r.Header.Set("User-Agent", test.agent)
			info, stored := &apirequest.RequestInfo{IsResourceRequest: true, Verb: test.verb}, Stored{Bytes: used, Largest: test.largest}
			if got := cost(r, info, stored, !test.uncached); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestCostOfWatches(t *testing.T) {
	const used = 10 << 20
	for name, test := range map[string]struct {
		query, verb string
		want        int64
	}{
		"from now on":              {query: "resourceVersion=7", verb: "watch"},
		"from any state":           {query: "resourceVersion=0", verb: "watch", want: baseCost + used},
		"from the newest":          {verb: "watch", want: baseCost + used},
		"that begins with a list":  {query: "sendInitialEvents=true&resourceVersion=7", verb: "watch", want: baseCost + used},
		"a proxy":                  {verb: "get"},
		"a log that mentions both": {query: "sendInitialEvents=true", verb: "get"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a?"+test.query, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if got := watchCost(r, &apirequest.RequestInfo{IsResourceRequest: true, Verb: test.verb}, Stored{Bytes: used}); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

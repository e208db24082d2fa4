package component

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// TestHideHosts tests that a request is counted, and its host is not named.
func TestHideHosts(t *testing.T) {
	HideHosts()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	before := requestResults(t)
	_, _ = client.Discovery().ServerVersion() // the answer is that nothing is there
	if after := requestResults(t); len(after) != len(before)+1 || !slices.Contains(after, "404 GET ") {
		t.Errorf("got the series %q, before %q", after, before)
	}
}

// requestResults returns the code, method and host of the series.
func requestResults(t *testing.T) []string {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var series []string
	for _, family := range families {
		if family.GetName() != "rest_client_requests_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			series = append(series, labels["code"]+" "+labels["method"]+" "+labels["host"])
		}
	}
	return series
}

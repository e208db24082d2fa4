package component

import (
	"maps"
	"net/http"
	"net/http/httptest"
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
	const hidden = "404 GET "
	before[hidden]++
	if after := requestResults(t); !maps.Equal(after, before) {
		t.Errorf("got the counts %v, want %v", after, before)
	}
}

// requestResults returns how many requests there were by code, method and host.
func requestResults(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "rest_client_requests_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			counts[labels["code"]+" "+labels["method"]+" "+labels["host"]] = metric.GetCounter().GetValue()
		}
	}
	return counts
}

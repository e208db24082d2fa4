package app

import (
	"errors"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"
)

// TestMetricsOfWebhooks tests that upstream, which calls the webhooks of converted
// tenants here, does not count by their names.
func TestMetricsOfWebhooks(t *testing.T) {
	options := DefaultOptions()
	options.CertSecret, options.Hosts = types.NamespacedName{Namespace: "vc-system", Name: "certificate"}, []string{"localhost"}
	options.Registerer = prometheus.NewRegistry()
	_, err := New(&rest.Config{Host: "https://127.0.0.1:1"}, options)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("there is no super cluster at this address: %v", err)
	}
	calls := metrics.NewCounterVec(
		&metrics.CounterOpts{Name: "apiserver_admission_webhook_request_total", Help: "As upstream's."}, []string{"name", "type"},
	)
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(calls)
	calls.WithLabelValues("a.example.com", "admit").Inc()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if name := families[0].GetMetric()[0].GetLabel()[0].GetValue(); name != "unexpected" {
		t.Errorf("the name is %q", name)
	}
}

package provisioner

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/virtualcluster/virtualcluster/standalone/internal/metricstest"
)

// TestMetricsAreDocumented: the document is made by the root module, which
// cannot ask for these metrics.
func TestMetricsAreDocumented(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry, func() int { return 7 })
	if err != nil {
		t.Fatal(err)
	}
	metrics.observeWake("Connection", time.Second)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 2 {
		t.Errorf("%d metrics, want 2", len(families))
	}
	metricstest.Documented(t, "../../docs/metrics.md", families)
	if got := families[0].GetMetric()[0].GetGauge().GetValue(); got != 7 {
		t.Errorf("%s is %v", families[0].GetName(), got)
	}
	if got := families[1].GetMetric()[0].GetHistogram(); got.GetSampleCount() != 1 || got.GetSampleSum() != 1 {
		t.Errorf("%s is %v", families[1].GetName(), got)
	}
	metrics.Unregister()
	if left, err := registry.Gather(); err != nil || len(left) != 0 {
		t.Errorf("metrics are left: %v, %v", left, err)
	}
}

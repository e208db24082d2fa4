package inflight

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/virtualcluster/virtualcluster/standalone/internal/metricstest"
)

func gather(t *testing.T, host *Host) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector(host))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// TestMetricsAreDocumented: the document is made by the root module, which
// cannot ask for these metrics.
func TestMetricsAreDocumented(t *testing.T) {
	host := newHost(math.MaxInt64)
	host.Add("a", Config{})
	families := gather(t, host)
	if len(families) != 4 {
		t.Errorf("%d metrics, want 4", len(families))
	}
	metricstest.Documented(t, "../../../docs/metrics.md", families)
}

func TestMetrics(t *testing.T) {
	host := newHost(math.MaxInt64)
	tenant := host.Add("a", Config{Limits: Limits{Watches: 1}})
	take(t, tenant, demand{kind: Watch})
	take(t, tenant, demand{kind: Write, cost: 7})
	for range 3 {
		_, _ = tenant.acquire(t.Context(), demand{kind: Watch})
	}
	want := map[string]float64{
		"vc_hosted_requests_in_flight a watch": 1, "vc_hosted_requests_in_flight a write": 1,
		"vc_hosted_requests_in_flight_limit a watch": 1, "vc_hosted_requests_in_flight_bytes a": 7,
		"vc_hosted_rejected_requests_total a watches": 3,
	}
	for _, f := range gather(t, host) {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			if got := m.GetGauge().GetValue() + m.GetCounter().GetValue(); got != want[name] {
				t.Errorf("%s is %v, want %v", name, got, want[name])
			}
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	host.Remove(tenant)
	if families := gather(t, host); len(families) != 0 {
		t.Errorf("a removed tenant has metrics: %v", families)
	}
}

package inflight

import (
	"fmt"
	"maps"
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
	if len(families) != 3 {
		t.Errorf("%d metrics, want 3", len(families))
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
		"vc_hosted_requests_in_flight watch": 1, "vc_hosted_requests_in_flight write": 1, "vc_hosted_requests_in_flight_bytes": 7,
		"vc_hosted_rejected_requests_total watches": 3,
	}
	expect(t, host, want)

	// A tenant that is gone takes its requests with it, but no counter goes back.
	host.Remove(tenant)
	expect(t, host, map[string]float64{"vc_hosted_rejected_requests_total watches": 3})
}

// expect compares the metrics that are not 0.
func expect(t *testing.T, host *Host, want map[string]float64) {
	t.Helper()
	want = maps.Clone(want)
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
}

// TestManyTenantsAddNoSeries: a thousand tenants have the series of one.
func TestManyTenantsAddNoSeries(t *testing.T) {
	host := newHost(math.MaxInt64)
	series := func() (count int) {
		for _, f := range gather(t, host) {
			count += len(f.GetMetric())
		}
		return count
	}
	none := series()
	for i := range 1000 {
		host.Add(fmt.Sprint("tenant-", i), Config{})
	}
	if all := series(); all != none {
		t.Errorf("1,000 tenants have %d series, and none %d", all, none)
	}
}

package quota

import (
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/virtualcluster/virtualcluster/standalone/internal/metricstest"
)

// TestMetricsAreDocumented: the document is made by the root module, which
// cannot ask for these metrics.
func TestMetricsAreDocumented(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector(ledgerWith(Limits{Bytes: 1})))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := strings.Count(string(document), "\n| `vc_hosted_storage_") + strings.Count(string(document), "\n| `vc_hosted_rejected_writes_")
	if documented != len(families) {
		t.Errorf("%d metrics are documented, and there are %d", documented, len(families))
	}
	metricstest.Documented(t, "../../../docs/metrics.md", families)
}

// TestMetrics: what an admin sees of a control plane that has reached its limit.
func TestMetrics(t *testing.T) {
	ledger := ledgerWith(Limits{Bytes: 2 * kibi, Objects: 7}, "1", "2")
	for range 3 {
		_, _, _ = ledger.reserve([]write{{key: []byte(root + "a/3"), size: 1}}, Ordinary, time.Now())
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector(ledger))
	want := map[string]float64{
		"vc_hosted_storage_bytes a": 2 * kibi, "vc_hosted_storage_objects a": 2,
		"vc_hosted_storage_limit_bytes a": 2 * kibi, "vc_hosted_storage_limit_objects a": 7,
		"vc_hosted_rejected_writes_total a storage": 3, "vc_hosted_rejected_writes_total a pace": 0, "vc_hosted_rejected_writes_total a store": 0,
	}
	if got := values(t, registry); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	ledger.Forget("a")
	if got := values(t, registry); len(got) != 0 {
		t.Errorf("a deleted control plane has metrics: %v", got)
	}
}

// values are the values of all metrics, by name and labels.
func values(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			name := f.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return all
}

package quota

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestMetricsAreDocumented: the document is made by the root module, which cannot ask for these metrics.
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
	if documented := strings.Count(string(document), "\n| `vc_hosted_"); documented != len(families) {
		t.Errorf("%d metrics are documented, and there are %d", documented, len(families))
	}
	for _, f := range families {
		row := fmt.Sprintf("\n| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), labels(f), f.GetHelp())
		if !strings.Contains(string(document), row) {
			t.Errorf("docs/metrics.md does not have the row%s", row)
		}
	}
}

func labels(f *dto.MetricFamily) string {
	var names []string
	for _, l := range f.GetMetric()[0].GetLabel() {
		names = append(names, l.GetName())
	}
	return strings.Join(names, ", ")
}

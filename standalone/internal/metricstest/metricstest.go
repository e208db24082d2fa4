// Package metricstest compares metrics with their document, which is generated
// by the root module: it cannot import this one.
package metricstest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// Documented reports the metrics that the document does not have.
func Documented(t *testing.T, document string, families []*dto.MetricFamily) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		labels := make([]string, 0, len(f.GetMetric()[0].GetLabel()))
		for _, label := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		kind := strings.ToLower(f.GetType().String())
		row := fmt.Sprintf("\n| `%s` | %s | %s | %s |\n", f.GetName(), kind, strings.Join(labels, ", "), f.GetHelp())
		if !strings.Contains(string(text), row) {
			t.Errorf("%s does not have the row%s", document, row)
		}
	}
}

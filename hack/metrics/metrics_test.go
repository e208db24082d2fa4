package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
)

// TestMetricsFollowTheConventions checks the conventions of Prometheus, and
// some of this project.
func TestMetricsFollowTheConventions(t *testing.T) {
	for _, p := range programs() {
		families, err := describe(p.register)
		if err != nil {
			t.Fatal(err)
		}
		if len(families) == 0 {
			t.Errorf("%s has no metrics", p.name)
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
		for _, f := range families {
			checkFamily(t, p.name, f)
		}
	}
}

// checkFamily checks the project's own conventions.
func checkFamily(t *testing.T, program string, f *dto.MetricFamily) {
	t.Helper()
	if prefix := strings.ReplaceAll(program, "-", "_") + "_"; !strings.HasPrefix(f.GetName(), prefix) {
		t.Errorf("%s does not begin with %s", f.GetName(), prefix)
	}
	if !strings.HasSuffix(f.GetHelp(), ".") {
		t.Errorf("%s: the help %q is not a sentence", f.GetName(), f.GetHelp())
	}
	if strings.HasPrefix(f.GetName(), "vc_syncer_quota_") || strings.HasPrefix(f.GetName(), "vc_syncer_converted_storage_") {
		return // they have series only for tenants that are limited
	}
	for _, l := range f.GetMetric()[0].GetLabel() {
		for _, unbounded := range []string{"tenant", "cluster", "namespace", "name", "uid"} {
			if l.GetName() == unbounded {
				t.Errorf("%s has the label %s, of which there are as many values as tenants or objects", f.GetName(), unbounded)
			}
		}
	}
}

func TestDescribeAndWrite(t *testing.T) {
	families, err := describe(func(r prometheus.Registerer) error {
		for _, c := range []prometheus.Collector{
			prometheus.NewCounter(prometheus.CounterOpts{Name: "ones_total", Help: "One."}),
			prometheus.NewCounterVec(prometheus.CounterOpts{Name: "counts_total", Help: "Counts."}, []string{"b", "a"}),
			prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gauges", Help: "This | that."}, []string{"one"}),
			prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "times_seconds", Help: "Times."}, []string{"one"}),
		} {
			if err := r.Register(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	write(out, "vc-some", families)
	want := `
## vc-some

| metric | type | labels | |
|---|---|---|---|
` + "| `counts_total` | counter | a, b | Counts. |\n" +
		"| `gauges` | gauge | one | This \\| that. |\n" +
		"| `ones_total` | counter |  | One. |\n" +
		"| `times_seconds` | histogram | one | Times. |\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestNothingIsLeftOut checks that every collector is documented, including
// those in which touch cannot create a series.
func TestNothingIsLeftOut(t *testing.T) {
	for _, p := range programs() {
		recorder := &recorder{Registry: prometheus.NewRegistry()}
		if err := p.register(recorder); err != nil {
			t.Fatal(err)
		}
		described := 0
		for _, c := range recorder.collectors {
			descriptions := make(chan *prometheus.Desc, 100)
			c.Describe(descriptions)
			described += len(descriptions)
		}
		families, err := describe(p.register)
		if err != nil {
			t.Fatal(err)
		}
		if len(families) != described {
			t.Errorf("%s registers %d metrics, and %d are shown", p.name, described, len(families))
		}
	}
}

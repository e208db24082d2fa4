package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// example returns a scenario with two runs.
func example() *Scenario {
	s := &Scenario{Name: "throughput", Size: "4 pods in 2 tenants"}
	for _, run := range []struct {
		rate  float64
		times []time.Duration
	}{{100, []time.Duration{4e6, 1e6, 2e6, 3e6}}, {50, []time.Duration{5e6, 6e6, 7e6, 8e6}}} {
		s.Add("pods a second", "", run.rate, 4).Want("≥ 60")
		s.AddLatency("down", run.times).P99.Want("≤ 5")
	}
	s.Notef("as fast as %s", "possible")
	s.Notef("as fast as %s", "possible")
	s.Charts = []*Chart{{Name: "latency", Title: "a < b & c", X: "ms", Y: "%", LogX: true, Lines: []Line{
		Distribution("down", []time.Duration{4e6, 1e6, 2e6, 3e6}),
	}}}
	return s
}

func TestWriteTable(t *testing.T) {
	var out strings.Builder
	if err := example().WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	want := `
throughput: 4 pods in 2 tenants
                 MEDIAN     SPREAD  SAMPLES  TO REACH
  pods a second      75  50 to 100        8  ≥ 60
  milliseconds   P50  SPREAD  P90  SPREAD  P99  SPREAD  SAMPLES  TO REACH
  down             4  2 to 6    6  4 to 8    6  4 to 8        8  p99 ≤ 5
  (as fast as possible)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3: "3", 1234.5: "1234", 42.25: "42.2", 4.256: "4.26", 0.42: "0.42", 0.0004: "0", -12.345: "-12.3", 2500: "2500",
	} {
		if got := number(v); got != want {
			t.Errorf("%v becomes %q, want %q", v, got, want)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	r := &Report{Version: "v1", Machine: Machine{CPUs: 2}, Notes: []string{"all at once"}, Scenarios: []*Scenario{example()}}
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	if want := []string{"results.json", "table.txt", "throughput-latency.svg"}; !slices.Equal(files, want) {
		t.Fatalf("there are %v, want %v", files, want)
	}
	table, err := os.ReadFile(filepath.Join(dir, "table.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"vc-bench v1 on 2 CPUs", "(all at once)", "pods a second"} {
		if !strings.Contains(string(table), part) {
			t.Errorf("the tables lack %q", part)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Median  float64   `json:"median"`
		Min     float64   `json:"min"`
		Max     float64   `json:"max"`
		Runs    []float64 `json:"runs"`
		Samples int       `json:"samples"`
		Goal    string    `json:"goal"`
	}
	var got struct {
		Version   string `json:"version"`
		Scenarios []struct {
			Rows      []row `json:"rows"`
			Latencies []struct {
				P90 row `json:"p90"`
			} `json:"latencies"`
		} `json:"scenarios"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	first := got.Scenarios[0].Rows[0]
	if first.Median != 75 || first.Min != 50 || first.Max != 100 || first.Samples != 8 || len(first.Runs) != 2 || first.Goal != "≥ 60" {
		t.Errorf("the first row became %+v", first)
	}
	if p90 := got.Scenarios[0].Latencies[0].P90; p90.Median != 6 || p90.Max != 8 || p90.Samples != 8 {
		t.Errorf("the 90th percentile became %+v", p90)
	}
}

// Package report shows results as tables, as JSON and as charts.
package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// Report is the result of one run of the program.
type Report struct {
	// Started is the start time, Took the duration in seconds.
	Started time.Time `json:"started"`
	Took    float64   `json:"tookSeconds"`
	// Version is the version of the program, Command its command line.
	Version string   `json:"version"`
	Command []string `json:"command"`
	// Machine describes the environment.
	Machine Machine `json:"machine"`
	// Notes apply to all scenarios.
	Notes []string `json:"notes,omitempty"`
	// Scenarios has the results in the order of the runs.
	Scenarios []*Scenario `json:"scenarios"`
}

// Machine describes the environment of the benchmark.
type Machine struct {
	CPUs         int    `json:"cpus"`
	MemoryMiB    int    `json:"memoryMiB"`
	Architecture string `json:"architecture"`
	System       string `json:"system"`
	// Super is the Kubernetes version of the super cluster, Nodes its number of
	// nodes.
	Super string `json:"super"`
	Nodes int    `json:"nodes"`
}

// Scenario is the result of one scenario at one size.
type Scenario struct {
	Name string `json:"name"`
	Size string `json:"size"`
	// Notes help to interpret the figures.
	Notes     []string   `json:"notes,omitempty"`
	Rows      []*Row     `json:"rows"`
	Latencies []*Latency `json:"latencies,omitempty"`
	// Charts are written to files of their own.
	Charts []*Chart `json:"-"`
}

// Row is a figure that is measured once a run.
type Row struct {
	Name string
	Unit string
	Runs []float64
	// Samples is the number of measurements in all runs together.
	Samples int
	// Goal is the target value, if there is one.
	Goal string
}

// Notef adds a note once.
func (s *Scenario) Notef(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(s.Notes, note) {
		s.Notes = append(s.Notes, note)
	}
}

// Add adds a value of a run, with its number of samples, to the row of that
// name.
func (s *Scenario) Add(name, unit string, value float64, samples int) *Row {
	for _, row := range s.Rows {
		if row.Name == name {
			row.add(value, samples)
			return row
		}
	}
	row := &Row{Name: name, Unit: unit}
	row.add(value, samples)
	s.Rows = append(s.Rows, row)
	return row
}

func (r *Row) add(value float64, samples int) {
	r.Runs = append(r.Runs, value)
	r.Samples += samples
}

// Want sets the target value.
func (r *Row) Want(goal string) { r.Goal = goal }

// Latency has percentiles of times, in milliseconds.
type Latency struct {
	Name string `json:"name"`
	P50  Row    `json:"p50"`
	P90  Row    `json:"p90"`
	P99  Row    `json:"p99"`
}

// AddLatency adds the percentiles of a run to those of that name. Times must
// not be empty.
func (s *Scenario) AddLatency(name string, times []time.Duration) *Latency {
	i := slices.IndexFunc(s.Latencies, func(l *Latency) bool { return l.Name == name })
	if i < 0 {
		i = len(s.Latencies)
		s.Latencies = append(s.Latencies, &Latency{Name: name})
	}
	l := s.Latencies[i]
	sorted := slices.Sorted(slices.Values(times))
	for p, row := range map[int]*Row{50: &l.P50, 90: &l.P90, 99: &l.P99} {
		row.Unit = "ms"
		row.add(measure.Milliseconds(measure.Percentile(sorted, p)), len(sorted))
	}
	return l
}

// Median returns the median of all runs.
func (r *Row) Median() float64 { return measure.Median(r.Runs) }

// MarshalJSON adds values that are computed from the runs.
func (r *Row) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name    string    `json:"name,omitempty"`
		Unit    string    `json:"unit,omitempty"`
		Median  float64   `json:"median"`
		Min     float64   `json:"min"`
		Max     float64   `json:"max"`
		Runs    []float64 `json:"runs"`
		Samples int       `json:"samples"`
		Goal    string    `json:"goal,omitempty"`
	}{r.Name, r.Unit, r.Median(), slices.Min(r.Runs), slices.Max(r.Runs), r.Runs, r.Samples, r.Goal})
}

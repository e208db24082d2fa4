// Package report holds what was measured and shows it: as a table, as JSON, and in plots.
package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// Report is what one call of the program measured.
type Report struct {
	// Started is when it began, Took how many seconds it has needed.
	Started time.Time `json:"started"`
	Took    float64   `json:"tookSeconds"`
	// Version is that of the program, Command how it was called.
	Version string   `json:"version"`
	Command []string `json:"command"`
	// Machine is what it ran on.
	Machine Machine `json:"machine"`
	// Notes hold for all scenarios.
	Notes []string `json:"notes,omitempty"`
	// Scenarios are what was done, in that order.
	Scenarios []*Scenario `json:"scenarios"`
}

// Machine is what everything ran on.
type Machine struct {
	CPUs         int    `json:"cpus"`
	MemoryMiB    int    `json:"memoryMiB"`
	Architecture string `json:"architecture"`
	System       string `json:"system"`
	// Super is the Kubernetes version of the super cluster, Nodes how many it has.
	Super string `json:"super"`
	Nodes int    `json:"nodes"`
}

// Scenario is what was measured in one scenario at one size.
type Scenario struct {
	Name string `json:"name"`
	Size string `json:"size"`
	// Notes say what a reader has to know to judge the figures.
	Notes     []string   `json:"notes,omitempty"`
	Rows      []*Row     `json:"rows"`
	Latencies []*Latency `json:"latencies,omitempty"`
	// Charts are drawn into files of their own.
	Charts []*Chart `json:"-"`
}

// Row is a figure, measured once a run.
type Row struct {
	Name string
	Unit string
	Runs []float64
	// Samples is how many measurements are behind all runs together.
	Samples int
	// Goal is the figure to reach, if there is one.
	Goal string
}

// Notef adds a note, unless it is there.
func (s *Scenario) Notef(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(s.Notes, note) {
		s.Notes = append(s.Notes, note)
	}
}

// Add adds a run's value to the row of that name, and so many samples.
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

// Want says what figure is to be reached.
func (r *Row) Want(goal string) { r.Goal = goal }

// Latency is percentiles of times, in milliseconds.
type Latency struct {
	Name string `json:"name"`
	P50  Row    `json:"p50"`
	P90  Row    `json:"p90"`
	P99  Row    `json:"p99"`
}

// AddLatency adds a run's percentiles to those of that name. There must be times.
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

// Median is the middle of all runs.
func (r *Row) Median() float64 { return measure.Median(r.Runs) }

// MarshalJSON adds what can be computed of the runs.
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

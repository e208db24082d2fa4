package bench

import (
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/test/bench/report"
)

// The names of some stages; whole is all stages together.
const down, up, whole = "down", "up", "create to Running"

// stages has the times that pods took from the response to their creation until
// they ran, in total and by stage.
type stages struct {
	// down ends when the super cluster has the copy, scheduling when the copy
	// has a node, starting when it runs, and up when the tenant sees it run.
	down, scheduling, starting, up []time.Duration
	// whole is the total.
	whole []time.Duration
}

// stages returns the times of the pods of a group; the empty group is all pods.
func (l *load) stages(group string) stages {
	s := stages{starting: l.spans(group, bound, ran), whole: l.spans(group, created, l.running())}
	if l.direct {
		s.scheduling = l.spans(group, created, bound)
		return s
	}
	s.down, s.scheduling, s.up = l.spans(group, created, copied), l.spans(group, copied, bound), l.spans(group, ran, shown)
	return s
}

// parts returns the stages with their names, in order. Pods that were created
// directly have fewer.
func (s stages) parts() []part {
	parts := []part{
		{down, s.down}, {"scheduling", s.scheduling}, {"starting", s.starting}, {up, s.up}, {whole, s.whole},
	}
	return slices.DeleteFunc(parts, func(p part) bool { return len(p.times) == 0 })
}

// part is a stage.
type part struct {
	name  string
	times []time.Duration
}

// and returns the times of both.
func (s stages) and(other stages) stages {
	return stages{
		down: slices.Concat(s.down, other.down), scheduling: slices.Concat(s.scheduling, other.scheduling),
		starting: slices.Concat(s.starting, other.starting), up: slices.Concat(s.up, other.up),
		whole: slices.Concat(s.whole, other.whole),
	}
}

// report adds the rows of a run, and returns them by the names of the stages.
// The names of the rows begin with before, which distinguishes them from those
// of other pods.
func (s stages) report(to *report.Scenario, before string) map[string]*report.Latency {
	rows := map[string]*report.Latency{}
	for _, part := range s.parts() {
		rows[part.name] = to.AddLatency(before+part.name, part.times)
	}
	return rows
}

// lines returns the distributions of the named stages; without names, of all.
func (s stages) lines(before string, names ...string) []report.Line {
	var lines []report.Line
	for _, part := range s.parts() {
		if len(names) == 0 || slices.Contains(names, part.name) {
			lines = append(lines, report.Distribution(before+part.name, part.times))
		}
	}
	return lines
}

// latencyChart returns a chart of distributions of times.
func latencyChart(name, title string, lines ...[]report.Line) *report.Chart {
	return &report.Chart{
		Name: name, Title: title, X: "milliseconds", Y: "share of the pods, %", LogX: true, Lines: slices.Concat(lines...),
	}
}

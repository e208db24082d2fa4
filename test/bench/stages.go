package bench

import (
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/test/bench/report"
)

// stages are the times that pods took from the answer to their creation until they ran, and for each part of the way.
type stages struct {
	// down is until the super cluster shows the copy, scheduling until it shows it running, up until the tenant shows that.
	down, scheduling, up []time.Duration
	// whole is the sum. Of pods that were created directly there is nothing else.
	whole []time.Duration
}

// stages are the times of the pods of a group; the empty group is all pods.
func (l *load) stages(group string) stages {
	if l.direct {
		return stages{whole: l.spans(group, created, ran)}
	}
	return stages{
		down: l.spans(group, created, copied), scheduling: l.spans(group, copied, ran), up: l.spans(group, ran, shown),
		whole: l.spans(group, created, shown),
	}
}

// and are the times of both.
func (s stages) and(other stages) stages {
	return stages{
		down: slices.Concat(s.down, other.down), scheduling: slices.Concat(s.scheduling, other.scheduling),
		up: slices.Concat(s.up, other.up), whole: slices.Concat(s.whole, other.whole),
	}
}

// stageRows are the rows of the stages. Of pods that were created directly there is only the whole.
type stageRows struct {
	down, scheduling, up, whole *report.Latency
}

// report adds a run's rows. What is before their names tells them from those of other pods.
func (s stages) report(to *report.Scenario, before string) (rows stageRows) {
	if len(s.down) > 0 {
		rows.down = to.AddLatency(before+"down", s.down)
		rows.scheduling = to.AddLatency(before+"scheduling", s.scheduling)
		rows.up = to.AddLatency(before+"up", s.up)
	}
	rows.whole = to.AddLatency(before+"create to Running", s.whole)
	return rows
}

// lines draws the stages.
func (s stages) lines(before string) []report.Line {
	var lines []report.Line
	for _, part := range []struct {
		name  string
		times []time.Duration
	}{{"down", s.down}, {"scheduling", s.scheduling}, {"up", s.up}, {"create to Running", s.whole}} {
		if len(part.times) > 0 {
			lines = append(lines, report.Distribution(before+part.name, part.times))
		}
	}
	return lines
}

// latencyChart draws how times are distributed.
func latencyChart(name, title string, lines ...[]report.Line) *report.Chart {
	return &report.Chart{
		Name: name, Title: title, X: "milliseconds", Y: "share of the pods, %", LogX: true, Lines: slices.Concat(lines...),
	}
}

package report

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteHead writes the description of the environment and the common notes.
func (r *Report) WriteHead(out io.Writer) error {
	m := r.Machine
	_, err := fmt.Fprintf(out, "vc-bench %s on %d CPUs (%s/%s) and %d MiB, a super cluster of Kubernetes %s with %d nodes\n",
		r.Version, m.CPUs, m.System, m.Architecture, m.MemoryMiB, m.Super, m.Nodes)
	return errors.Join(err, writeNotes(out, r.Notes))
}

func writeNotes(out io.Writer, notes []string) error {
	for _, note := range notes {
		if _, err := fmt.Fprintf(out, "  (%s)\n", note); err != nil {
			return err
		}
	}
	return nil
}

// WriteTable writes the results as text.
func (s *Scenario) WriteTable(out io.Writer) error {
	_, _ = fmt.Fprintf(out, "\n%s: %s\n", s.Name, s.Size)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	width := s.width()
	if len(s.Rows) > 0 {
		_, _ = fmt.Fprintln(w, "\tMEDIAN\tSPREAD\tSAMPLES\t  TO REACH")
	}
	for _, r := range s.Rows {
		_, _ = fmt.Fprintf(w, "%-*s\t%s\t%s\t%d\t%s\n", width, r.title(), number(r.Median()), r.spread(), r.Samples, last(r.Goal))
	}
	_ = w.Flush()
	if len(s.Latencies) > 0 {
		_, _ = fmt.Fprintf(w, "%-*s\tP50\tSPREAD\tP90\tSPREAD\tP99\tSPREAD\tSAMPLES\t  TO REACH\n", width, "milliseconds")
	}
	for _, l := range s.Latencies {
		_, _ = fmt.Fprintf(w, "%-*s\t%s\t%s\t%s\t%d\t%s\n", width, l.Name, l.P50.cells(), l.P90.cells(), l.P99.cells(), l.P50.Samples, last(l.goal()))
	}
	_ = w.Flush()
	return writeNotes(out, s.Notes)
}

func (r *Row) title() string {
	if r.Unit == "" {
		return r.Name
	}
	return r.Name + ", " + r.Unit
}

// width returns the length of the longest name, which aligns both tables of a
// scenario.
func (s *Scenario) width() (widest int) {
	for _, r := range s.Rows {
		widest = max(widest, len(r.title()))
	}
	for _, l := range s.Latencies {
		widest = max(widest, len(l.Name))
	}
	return widest
}

// cells returns the median and the spread.
func (r *Row) cells() string { return number(r.Median()) + "\t" + r.spread() }

// goal lists the target values of the percentiles.
func (l *Latency) goal() string {
	var goals []string
	for _, p := range []struct{ name, goal string }{{"p50", l.P50.Goal}, {"p90", l.P90.Goal}, {"p99", l.P99.Goal}} {
		if p.goal != "" {
			goals = append(goals, p.name+" "+p.goal)
		}
	}
	return strings.Join(goals, ", ")
}

// spread returns the minimum and the maximum of several runs.
func (r *Row) spread() string {
	if len(r.Runs) < 2 {
		return ""
	}
	return number(slices.Min(r.Runs)) + " to " + number(slices.Max(r.Runs))
}

// last returns a cell of the last column, which is not aligned.
func last(cell string) string {
	if cell == "" {
		return ""
	}
	return "  " + cell
}

// number formats a value with three significant digits, or with all its integer
// digits.
func number(v float64) string {
	switch abs := max(v, -v); {
	case abs >= 100 || v == float64(int64(v)):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case abs >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', 3, 64), "0"), ".")
}

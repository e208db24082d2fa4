package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	// linesOfEnd is how many lines of a red step are repeated if it does not say
	// what is red.
	linesOfEnd = 15
	// maxLine is how much of a line is repeated, in bytes.
	maxLine = 600
)

// marks begin the lines that are repeated in the summary. hack/specs prints them.
const (
	markRed     = "RED "
	markFlaky   = "FLAKY "
	markFinding = "FINDING "
	markSlow    = "SLOW "
	// markFail is that of gotestsum for each failed test. The next line has its reason.
	markFail = "=== FAIL: "
)

// finding is a test that failed and then passed.
type finding struct {
	Time   time.Time `json:"time"`
	Step   string    `json:"step"`
	Text   string    `json:"text"`
	Commit string    `json:"commit,omitempty"`
	Load   string    `json:"load,omitempty"`
}

// summarize prints what became of each step, and what a reader has to know of it.
// It returns what was flaky.
func summarize(out io.Writer, results []result, selected selection) []finding {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	p("\n=== summary\n")
	var flaky []finding
	for _, r := range results {
		switch {
		case r.leftOut != "":
			p("SKIPPED %s: %s\n", r.target, r.leftOut)
		case r.err != nil:
			p("red     %5.0f s  %s: %s\n", r.took.Seconds(), r.target, oneLine(r.err.Error()))
		default:
			p("green   %5.0f s  %s\n", r.took.Seconds(), r.target)
		}
	}
	for _, line := range selected.lines() {
		p("%s\n", line)
	}
	for _, r := range results {
		for _, line := range marked(r.output, markSlow) {
			p("%s\n", line)
		}
	}
	for _, r := range results {
		for _, line := range flakyLines(r) {
			p("%s\n", line)
			flaky = append(flaky, finding{Step: r.target, Text: line})
		}
	}
	for _, r := range results {
		for _, line := range redLines(r) {
			p("%s\n", line)
		}
	}
	return flaky
}

// flakyLines are what passed at its second attempt.
func flakyLines(r result) []string {
	lines := append(marked(r.output, markFinding), marked(r.output, markFlaky)...)
	if r.err != nil {
		return lines // of the failed tests of Go, none is known to be flaky
	}
	for _, test := range marked(r.output, markFail) {
		lines = append(lines, markFlaky+strings.TrimPrefix(test, markFail))
	}
	return lines
}

// redLines are what is red in a step.
func redLines(r result) []string {
	if r.err == nil {
		return nil
	}
	lines := append(marked(r.output, markRed), marked(r.output, markFail)...)
	if len(lines) > 0 {
		return lines
	}
	all := strings.Split(strings.TrimSpace(r.output), "\n")
	for _, line := range all[max(0, len(all)-linesOfEnd):] {
		lines = append(lines, fmt.Sprintf("%s%s: %.*s", markRed, r.target, maxLine, line))
	}
	return lines
}

// marked returns the lines that begin with a mark, each once. For a failed test
// of Go it has the line after it, too.
func marked(output, mark string) []string {
	var lines []string
	known := map[string]bool{}
	all := strings.Split(output, "\n")
	for i, line := range all {
		if !strings.HasPrefix(line, mark) || known[line] {
			continue
		}
		known[line] = true
		if mark == markFail && i+1 < len(all) {
			line += " " + strings.TrimSpace(all[i+1])
		}
		lines = append(lines, fmt.Sprintf("%.*s", maxLine, line))
	}
	return lines
}

// keep adds findings to a file, a line of JSON each.
func keep(file, commit string, findings []finding) (err error) {
	if len(findings) == 0 {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	load, _ := os.ReadFile("/proc/loadavg") // which other systems do not have
	for _, finding := range findings {
		finding.Time, finding.Commit, finding.Load = time.Now().UTC(), commit, oneLine(string(load))
		if err := json.NewEncoder(f).Encode(finding); err != nil {
			return err
		}
	}
	return nil
}

func oneLine(text string) string {
	return fmt.Sprintf("%.*s", maxLine, strings.Join(strings.Fields(text), " "))
}

package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
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
	markCost    = "COST "
	markSlow    = "SLOW "
	// markFail is that of gotestsum for each failed test. The next line has its reason.
	markFail = "=== FAIL: "
)

// summarize prints what became of each step, and what a reader has to know of it.
// It returns the lines of what was red and of what was flaky. Earlier are the
// lines of earlier runs.
func summarize(out io.Writer, results []result, selected selection, earlier []string) (red, flaky []string) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	p("\n=== summary\n")
	for _, r := range results {
		switch {
		case r.leftOut != "":
			p("SKIPPED %s: %s\n", r.target, r.leftOut)
		case r.err != nil:
			p("red     %5.0f s  %s: %s\n", r.took.Seconds(), r.target, oneLine(r.err.Error()))
		default:
			p("green   %5.0f s  %s\n", r.took.Seconds(), r.target)
		}
		red, flaky = append(red, redLines(r)...), append(flaky, flakyLines(r)...)
	}
	lines := selected.lines()
	for _, r := range results {
		lines = slices.Concat(lines, marked(r.output, markCost), marked(r.output, markSlow))
	}
	lines = slices.Concat(lines, flaky, again(flaky, earlier), red)
	for _, line := range lines {
		p("%s\n", line)
	}
	return red, flaky
}

// again returns a line for each flaky test that was flaky in an earlier run, too.
func again(flaky, earlier []string) []string {
	times := map[string]int{}
	for _, line := range earlier {
		times[testOf(line)]++
	}
	var lines []string
	for _, line := range flaky {
		if n := times[testOf(line)]; n > 0 {
			lines = append(lines, fmt.Sprintf("AGAIN %s: flaky in %d of the last runs as well; the next change repairs it", testOf(line), n))
		}
	}
	return lines
}

// testOf returns which test a flaky line is of, without its place in a file and
// the time it took.
func testOf(line string) string {
	found := flakyTest.FindStringSubmatch(line)
	if found == nil {
		return line
	}
	return found[1] + " " + found[2] + found[3] + found[4]
}

// flakyTest has a suite, a file and the text of a container; or a package and a
// test of Go.
var flakyTest = regexp.MustCompile(`^(?:FLAKY|FINDING) (\S+) (?:(\w+_test\.go):\d+( "(?:[^"\\]|\\.)*")|(\S+))`)

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

func oneLine(text string) string {
	return fmt.Sprintf("%.*s", maxLine, strings.Join(strings.Fields(text), " "))
}

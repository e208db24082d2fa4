package main

import (
	"fmt"
	"slices"
	"strings"
)

// selection is what a run leaves out.
type selection struct {
	leftOut []area
	// why says since when nothing has changed.
	why string
}

// choose returns the areas that no changed file concerns. A file that nothing
// is known of concerns all.
func choose(all []area, changed []string) []area {
	concerned := map[string]bool{}
	for _, file := range changed {
		known := alwaysTested(file)
		for _, a := range all {
			if a.concerns(file) {
				concerned[a.name], known = true, true
			}
		}
		if !known {
			return nil
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(a area) bool { return concerned[a.name] })
}

// alwaysTested tells whether a change of a file concerns what runs each time, and
// nothing else: unit tests, and specs of no area.
func alwaysTested(file string) bool {
	if spec, found := specOf(file); found {
		return !slices.Contains([]string{"attack", "elsewhere", "helpers", "suite"}, spec) // all specs use these
	}
	return strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "test/")
}

// has tells whether a step is left out.
func (s selection) has(target string) bool {
	return slices.ContainsFunc(s.leftOut, func(a area) bool { return slices.Contains(a.steps, target) })
}

// variables are those of the Makefile that leave specs out: a regular expression
// of their files.
func (s selection) variables() []string {
	var names []string
	for _, a := range s.leftOut {
		for _, spec := range a.specs {
			names = append(names, strings.ReplaceAll(spec, "*", ".*"))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf(`SKIP_FILES=/(%s)_test\.go`, strings.Join(names, "|"))}
}

// lines say what is left out, one for each area.
func (s selection) lines() []string {
	var lines []string
	for _, a := range s.leftOut {
		if tests := slices.Concat(a.steps, a.specs); len(tests) > 0 {
			lines = append(lines, fmt.Sprintf("LEFT OUT %s (%s): %s", a.name, strings.Join(tests, ", "), s.why))
		}
	}
	return lines
}

package main

import (
	"path"
	"regexp"
	"slices"
)

// open returns the areas that the results of a run do not show to be green.
func (s selection) open(all []area, results []result) []string {
	ran := map[string]result{}
	for _, r := range results {
		if r.leftOut == "" {
			ran[r.target] = r
		}
	}
	var names []string
	for _, a := range all {
		if !s.isLeftOut(a) && !a.isGreen(ran) {
			names = append(names, a.name)
		}
	}
	return names
}

func (s selection) isLeftOut(a area) bool {
	return slices.ContainsFunc(s.leftOut, func(u unchanged) bool { return u.name == a.name })
}

// isGreen tells whether all that an area has was green in the steps that ran: its
// own, and its specs in suites of which others may be red.
func (a area) isGreen(ran map[string]result) bool {
	for _, target := range a.steps {
		if r, found := ran[target]; !found || r.err != nil {
			return false
		}
	}
	if len(a.specs) == 0 {
		return true
	}
	for _, folder := range specFolders() {
		r, found := ran["test-"+path.Base(folder)]
		if !found || r.err != nil && !a.isGreenIn(folder, redLines(r)) {
			return false
		}
	}
	return true
}

// redSpec is a line of hack/specs for a container of specs in a file.
var redSpec = regexp.MustCompile(`^RED [a-z]+ (\w+_test\.go):\d+ `)

// isGreenIn tells whether the lines of a suite that is red have only specs of
// other areas.
func (a area) isGreenIn(folder string, red []string) bool {
	return !slices.ContainsFunc(red, func(line string) bool {
		found := redSpec.FindStringSubmatch(line)
		return found == nil || a.hasSpec(path.Join(folder, found[1]))
	})
}

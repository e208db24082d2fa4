package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shortCommit is how much of a commit is printed.
const shortCommit = 8

// selection is what a run leaves out.
type selection struct{ leftOut []unchanged }

// unchanged is an area that was green at a commit, since which nothing that
// concerns it has changed.
type unchanged struct {
	area
	since string
}

// choice returns what a run leaves out after earlier ones, with one version of Go.
func choice(ctx context.Context, all []area, runs []verdict, version string) (selection, error) {
	since := greenSince(ctx, all, runs, version)
	if len(since) == 0 {
		return selection{}, nil
	}
	users, err := specUsers()
	if err != nil {
		return selection{}, err
	}
	var s selection
	for _, commit := range slices.Sorted(maps.Keys(since)) {
		changed, err := changes(ctx, commit)
		if err != nil {
			return selection{}, err
		}
		for _, a := range choose(all, changed, users) {
			if slices.Contains(since[commit], a.name) {
				s.leftOut = append(s.leftOut, unchanged{area: a, since: commit})
			}
		}
	}
	return s, nil
}

// greenSince returns, by commit, the areas that were last green there: at the last
// run of a commit that HEAD contains of which it is not open.
func greenSince(ctx context.Context, all []area, runs []verdict, version string) map[string][]string {
	since, known := map[string][]string{}, map[string]bool{}
	for _, run := range runs {
		if len(known) == len(all) {
			break
		}
		if run.Commit == "" || run.Go != version || !contains(ctx, run.Commit) {
			continue
		}
		for _, a := range all {
			if !known[a.name] && !slices.Contains(run.Open, a.name) {
				known[a.name] = true
				since[run.Commit] = append(since[run.Commit], a.name)
			}
		}
	}
	return since
}

// choose returns the areas that no changed file concerns. A file that nothing
// is known of concerns all. Users are those of each file of specs.
func choose(all []area, changed []string, users map[string][]string) []area {
	concerned := map[string]bool{}
	for _, file := range changed {
		_, isSpec := users[file]
		known := isSpec || alwaysTested(file)
		for _, a := range all {
			if a.concerns(file) || slices.ContainsFunc(users[file], a.hasSpec) {
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
// nothing else: unit tests.
func alwaysTested(file string) bool {
	return strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "test/")
}

// has tells whether a step is left out.
func (s selection) has(target string) bool {
	return slices.ContainsFunc(s.leftOut, func(u unchanged) bool { return slices.Contains(u.steps, target) })
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
			lines = append(lines, fmt.Sprintf("LEFT OUT %s (%s): nothing it depends on has changed since %.*s, where it was green",
				a.name, strings.Join(tests, ", "), shortCommit, a.since))
		}
	}
	return lines
}

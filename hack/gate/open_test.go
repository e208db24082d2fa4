package main

import (
	"errors"
	"slices"
	"testing"
)

// TestOpen: what a run does not show to be green.
func TestOpen(t *testing.T) {
	all := []area{
		{name: "gateway", specs: []string{"gateway*"}}, {name: "hosts", specs: []string{"host*"}},
		{name: "plugins", steps: []string{"test-plugins"}}, {name: "chart", specs: []string{"chart"}, steps: []string{"test-chart"}}, {name: "words"},
	}
	green := func(target string) result { return result{step: step{target: target}} }
	red := func(target, output string) result {
		return result{step: step{target: target}, err: errors.New("exit status 2"), output: output}
	}
	rest := []result{green("test-plugins"), green("test-chart")}
	suites := []result{green("test-integration"), green("test-escapes")}
	for name, tc := range map[string]struct {
		results []result
		want    []string
	}{
		"all green":           {slices.Concat(rest, suites), nil},
		"a step":              {slices.Concat([]result{red("test-plugins", ""), green("test-chart")}, suites), []string{"plugins"}},
		"nothing but checks":  {[]result{red("lint-code", "")}, []string{"gateway", "hosts", "plugins", "chart"}},
		"a suite that waited": {rest, []string{"gateway", "hosts", "chart"}},
		"a container": {
			slices.Concat(rest, []result{red("test-integration", "log\nRED integration gateway_forms_test.go:3 \"In a form\": failed twice: no\nmake: exit\n"), green("test-escapes")}),
			[]string{"gateway"},
		},
		"one of no area": {
			slices.Concat(rest, []result{red("test-integration", "RED integration kinds_test.go:3 \"In a form\": no\n"), green("test-escapes")}), nil,
		},
		"a process that died": {
			slices.Concat(rest, []result{green("test-integration"), red("test-escapes", "RED escapes chart_test.go:3 \"a\": no\nRED escapes: a process died\n")}),
			[]string{"gateway", "hosts", "chart"},
		},
		"no reason": {
			slices.Concat(rest, []result{green("test-integration"), red("test-escapes", "gateway_test.go:3 is in a log")}),
			[]string{"gateway", "hosts", "chart"},
		},
		"a step that cannot run here": {
			slices.Concat(suites, []result{{step: step{target: "test-plugins"}, leftOut: "no root"}, green("test-chart")}), []string{"plugins"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (selection{}).open(all, tc.results); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := (selection{leftOut: []unchanged{{area: all[0]}, {area: all[3]}}}).open(all, rest); !slices.Equal(got, []string{"hosts"}) {
		t.Errorf("got %q with areas that are left out", got)
	}
}
